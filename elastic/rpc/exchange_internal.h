#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/parameters/parameter_shard.h"
#include "elastic/parameters/partition_layout.h"
#include "elastic/rpc/links.h"
#include "models/model.h"

// Included after ours: gRPC defines macros with the names of those in base/mutex.h.
#include "elastic/rpc/elastic.pb.h"

// The format of an exchange of parameters: the worker's side (exchange_worker.cc) and the server's
// (exchange_server.cc). No sockets, no threads.
namespace sluice::elastic {

// A worker's exchange with one server.
struct ExchangePart {
  std::string server;                // for errors
  std::vector<uint32_t> partitions;  // ascending
  ExchangeRequest request;
  ExchangeReply reply;
};

// Splits a worker's pushes and pulls by server, and joins the answers. Remembers the dense values
// received last, so that a server sends only those that have changed since.
class ExchangePacker {
 public:
  // `bf16`: weights and gradients are sent as bfloat16.
  ExchangePacker(const models::Network& network, uint32_t partitions, bool bf16);

  // The content of an exchange, whichever servers have the partitions.
  struct Work {
    std::span<const BatchPush> pushes = {};  // without a gradient: the end of a lane
    const BatchIdentity* pull = nullptr;
    Purpose purpose = Purpose::kStep;
    models::ParameterView* wanted = nullptr;
  };
  // The requests, except for the map's version.
  void Pack(const Work& work, std::span<ExchangePart* const> parts);
  // The replies to the pull that was packed last. Fails if they do not fit it.
  Status Take(std::span<ExchangePart* const> parts, models::ParameterView* view);
  // By partition: the versions received by the last Take.
  const std::vector<int64_t>& versions() const { return versions_; }
  // Partitions have moved: a version of one may have another meaning.
  void Forget();

 private:
  // The rows of one table in the order of their partitions: indices into the batch's list.
  struct RowOrder {
    std::vector<uint32_t> places;
    std::vector<size_t> begin;  // of each partition, and the end
  };
  RowOrder OrderRows(size_t table, const std::vector<int64_t>& ids) const;
  void AddPush(const BatchPush& push, std::span<ExchangePart* const> parts) const;
  void AddDense(const BatchPush& push, const ExchangePart& part, PushProto* to) const;
  void AddPull(const Work& work, ExchangePart* part) const;
  void AddPushRows(const BatchPush& push, size_t table, std::span<ExchangePart* const> parts,
                   std::span<PushProto* const> to) const;
  void AddPullRows(const models::ParameterView& view, size_t table,
                   std::span<ExchangePart* const> parts);
  Status TakeDense(const ExchangePart& part);
  Status TakeRows(const ExchangePart& part, size_t table, std::vector<float>* values) const;

  const models::Network& network_;
  const PartitionLayout layout_;
  const bool bf16_;
  std::vector<int64_t> versions_;  // by partition: of the dense values pulled last
  std::vector<uint8_t> current_;   // by partition: that version may be sent to a server
  std::vector<RowOrder> pulled_;   // by table
  std::vector<std::vector<float>> dense_;
};

// A push whose numbers are in the message, which must outlive it, or here.
struct UnpackedPush {
  std::vector<uint32_t> partitions;
  std::vector<std::vector<float>> widened;
  PushRequest request;
};
// `partitions`: those concerned by the push.
Status Unpack(const PushProto& proto, const PartitionLayout& layout,
              std::span<const uint32_t> partitions, UnpackedPush* push);

// Answers a pull of these partitions; `not_open` after `wait_seconds` if its step is not open.
Status AnswerPull(const PullProto& proto, MapVersion map_version,
                  std::span<const uint32_t> partitions, double wait_seconds, ParameterShard& shard,
                  ExchangeReply* reply);

}  // namespace sluice::elastic
