#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "base/status.h"
#include "elastic/parameters/packed_numbers.h"
#include "elastic/parameters/parameter_rules.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/queue/task.h"
#include "elastic/rpc/job_endpoint.h"
#include "elastic/rpc/links.h"
#include "elastic/rpc/world.h"
#include "elastic/storage/checkpoint_file_internal.h"
#include "models/model.h"

// Included after ours: gRPC defines macros with the names of those in base/mutex.h.
#include "elastic/queue/queue_codec_internal.h"
#include "elastic/rpc/elastic.pb.h"
#include "elastic/transport/call_internal.h"

// Conversion of the engine's types to messages. Included by the gRPC shells only.
namespace sluice::elastic {

// The largest message to a master: a piece of the weights, the metrics of a shard.
inline constexpr int kMaxMasterMessageBytes = 64 << 20;
// For calls whose duration depends on the size of a model or a partition.
inline constexpr auto kBulkDeadline = std::chrono::minutes(10);
// How long a call is repeated while the other side cannot be reached.
inline constexpr double kRetrySeconds = 30;
// Weights are sent in pieces: no message is as large as a model may be.
inline constexpr size_t kChunkBytes = 4U << 20;

void ToProto(const Task& task, TaskProto* proto);
Task FromProto(const TaskProto& proto);
void ToProto(const RoundPosition& position, RoundPositionProto* proto);
RoundPosition FromProto(const RoundPositionProto& proto);
void ToProto(const WorldArrival& arrival, RegroupRequest* proto);  // except the incarnation
WorldArrival FromProto(const RegroupRequest& proto);
void ToProto(const WorldAnswer& answer, RegroupReply* proto);
WorldAnswer FromProto(const RegroupReply& proto);
void ToProto(const MasterLink::Answer& answer, TakeReply* proto);
MasterLink::Answer FromProto(const TakeReply& proto);
std::vector<TaskId> HeldTasksOf(const TakeRequest& proto);
void ToProto(const LeaseStatus& lease_status, ReportReply* proto);
LeaseStatus FromProto(const ReportReply& proto);
void ToProto(const BatchIdentity& batch, BatchProto* proto);
BatchIdentity FromProto(const BatchProto& proto);

void ToProto(const PartitionMap& map, PartitionMapProto* proto);
Result<PartitionMap> FromProto(const PartitionMapProto& proto);

// The numbers in place: a string's bytes are aligned for any number.
template <typename Number>
Result<std::span<const Number>> View(const std::string& bytes) {
  if (bytes.size() % sizeof(Number) != 0 ||
      reinterpret_cast<uintptr_t>(bytes.data()) % alignof(Number) != 0) {
    return InvalidArgument("a message with half a number in it");
  }
  return std::span(reinterpret_cast<const Number*>(bytes.data()), bytes.size() / sizeof(Number));
}
// Room for this many numbers in a message.
template <typename Number>
Number* Room(size_t count, std::string* bytes) {
  bytes->resize(count * sizeof(Number));
  return reinterpret_cast<Number*>(bytes->data());
}

// AnswerCall for a call that returns weights, in pieces. `handle`: Result<std::shared_ptr<const
// std::string>>(const Request&).
template <typename Request, typename Chunk, typename Handle>
grpc::Status AnswerCall(grpc::ServerSplitStreamer<Request, Chunk>* call, const Handle& handle) {
  return ToGrpc(Guarded("a call between processes of a job", [&]() -> Status {
    Request request;
    if (!call->Read(&request)) {
      return InvalidArgument("a call without a message that can be read");
    }
    ASSIGN_OR_RETURN(const std::shared_ptr<const std::string> weights, handle(request));
    Chunk chunk;
    for (size_t begin = 0; begin < weights->size(); begin += kChunkBytes) {
      chunk.set_weights(weights->substr(begin, kChunkBytes));
      if (!call->Write(chunk)) {
        return Unavailable("the reader of the weights went away");
      }
    }
    return Status();
  }));
}

// The weights that a worker delivers in chunks, and their sender; `next`: reads one, false at the
// end. An error: some are missing, or the digest is not theirs.
Result<models::NetworkWeights> ReadDelivery(const std::function<bool(DeliverChunk* chunk)>& next,
                                            Incarnation* worker);

// Repeats `call` while the other side cannot be reached, until `stop`. `fence`, for calls to a
// master: the call carries the latest term, and an answer with an earlier one counts as no answer.
Status CallWithRetry(const std::string& token, const std::string& context_name,
                     const std::stop_token& stop,
                     const std::function<grpc::Status(grpc::ClientContext*)>& call,
                     TermFence* fence = nullptr);

}  // namespace sluice::elastic
