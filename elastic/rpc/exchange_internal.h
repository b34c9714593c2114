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

// After ours: gRPC brings macros that have the names of those in base/mutex.h.
#include "elastic/rpc/elastic.pb.h"

// What an exchange of parameters looks like on its way: the worker's side (exchange_worker.cc) and
// the server's (exchange_server.cc). No sockets, no threads.
namespace sluice::elastic {

// A worker's exchange with one server.
struct ExchangePart {
  std::string server;                // for errors
  std::vector<uint32_t> partitions;  // ascending
  ExchangeRequest request;
  ExchangeReply reply;
};

// Cuts what a worker pushes and pulls into what each server has, and puts the answers together.
// Remembers the dense values that came last, so that a server sends only what has changed since.
class ExchangePacker {
 public:
  // `bf16`: weights and gradients travel as bfloat16.
  ExchangePacker(const models::Network& network, uint32_t partitions, bool bf16);

  // What is exchanged, whoever has the partitions.
  struct Work {
    std::span<const BatchPush> pushes = {};  // without a gradient: the end of a lane
    const BatchIdentity* pull = nullptr;
    Purpose purpose = Purpose::kStep;
    models::ParameterView* wanted = nullptr;
  };
  // The requests, all but the map's version.
  void Pack(const Work& work, std::span<ExchangePart* const> parts);
  // The replies to the pull that was packed last. Fails when they do not fit it.
  Status Take(std::span<ExchangePart* const> parts, models::ParameterView* view);
  // By partition: what Take has taken last.
  const std::vector<int64_t>& versions() const { return versions_; }
  // Partitions have moved: a version of one may not mean what it did.
  void Forget();

 private:
  // The rows of one table in the order of their partitions: places in the batch's list.
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
  std::vector<int64_t> versions_;  // by partition: of the dense values that were pulled last
  std::vector<uint8_t> current_;   // by partition: a server may be told that version
  std::vector<RowOrder> pulled_;   // by table
  std::vector<std::vector<float>> dense_;
};

// A push whose numbers lie in the message, which must outlive it, or here.
struct UnpackedPush {
  std::vector<uint32_t> partitions;
  std::vector<std::vector<float>> widened;
  PushRequest request;
};
// `partitions`: what the push is about.
Status Unpack(const PushProto& proto, const PartitionLayout& layout,
              std::span<const uint32_t> partitions, UnpackedPush* push);

// Answers a pull of these partitions; `not_open` after `wait_seconds` when its step is not open.
Status AnswerPull(const PullProto& proto, uint64_t map_version,
                  std::span<const uint32_t> partitions, double wait_seconds, ParameterShard& shard,
                  ExchangeReply* reply);

}  // namespace sluice::elastic
