#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

#include "base/guarded.h"
#include "base/status.h"
#include "elastic/parameters/packed_numbers.h"
#include "elastic/parameters/parameter_rules.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/queue/task.h"
#include "elastic/rpc/job_endpoint.h"
#include "elastic/rpc/world.h"
#include "elastic/storage/checkpoint_file_internal.h"

// After ours: gRPC brings macros that have the names of those in base/mutex.h.
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include "elastic/rpc/elastic.pb.h"
#include "elastic/transport/rpc_server_internal.h"

// How the engine's words travel. Included by the gRPC shells only.
namespace sluice::elastic {

// The largest message: a server's slice of the dense tensors both ways. Larger models need more
// servers.
inline constexpr int kMaxMessageBytes = 1 << 29;
// What is around a push when it is shipped on to a replica.
inline constexpr int kEnvelopeBytes = 1 << 20;
// The largest that a master is told: a piece of the weights, the metrics of a shard.
inline constexpr int kMaxMasterMessageBytes = 64 << 20;
// A process that does not answer so long is treated as not reachable.
inline constexpr auto kCallDeadline = std::chrono::seconds(20);
// For what takes as long as a model or a partition is large.
inline constexpr auto kBulkDeadline = std::chrono::minutes(10);
// How long a call is repeated while the other side cannot be reached.
inline constexpr double kRetrySeconds = 30;
// Weights travel in pieces: no message is as large as a model may be.
inline constexpr size_t kChunkBytes = 4U << 20;
inline constexpr char kTokenKey[] = "x-sluice-token";
// The term of the master that speaks, or the latest that the caller has heard of.
inline constexpr char kTermKey[] = "x-sluice-term";

grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status, const std::string& context);
void ToProto(const Status& status, StatusProto* proto);
Status FromProto(const StatusProto& proto);

void ToProto(const Task& task, TaskProto* proto);
Task FromProto(const TaskProto& proto);
void ToProto(const TaskReport& report, ReportRequest* proto);
TaskReport FromProto(const ReportRequest& proto);
void ToProto(const RoundPosition& position, RoundPositionProto* proto);
RoundPosition FromProto(const RoundPositionProto& proto);
void ToProto(const WorldArrival& arrival, MeetRequest* proto);  // but for the incarnation
WorldArrival FromProto(const MeetRequest& proto);
void ToProto(const WorldAnswer& answer, MeetReply* proto);
WorldAnswer FromProto(const MeetReply& proto);
void ToProto(const BatchIdentity& batch, BatchProto* proto);
BatchIdentity FromProto(const BatchProto& proto);

void ToProto(const PartitionMap& map, PartitionMapProto* proto);
Result<PartitionMap> FromProto(const PartitionMapProto& proto);

// The numbers where they lie: a string's bytes are aligned for any number.
template <typename Number>
Result<std::span<const Number>> View(const std::string& bytes) {
  if (bytes.size() % sizeof(Number) != 0 ||
      reinterpret_cast<uintptr_t>(bytes.data()) % alignof(Number) != 0) {
    return InvalidArgument("a message with half a number in it");
  }
  return std::span(reinterpret_cast<const Number*>(bytes.data()), bytes.size() / sizeof(Number));
}
// Room for so many numbers in a message.
template <typename Number>
Number* Room(size_t count, std::string* bytes) {
  bytes->resize(count * sizeof(Number));
  return reinterpret_cast<Number*>(bytes->data());
}

// `host`: any free port of it; or a whole "unix...:" address.
Result<std::unique_ptr<RpcServer>> StartServer(const ServerLimits& limits, const std::string& host,
                                               grpc::Service* service);
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address);
// Refuses a caller without the job's token. Before its message is received: see AnswerCall.
grpc::Status CheckToken(const grpc::ServerContext& context, const std::string& token);
void Prepare(grpc::ClientContext* context, const std::string& token);
// ResourceExhausted: what a message is, and that it cannot travel.
Status TooLarge(const char* what, size_t bytes);

// Receives and answers a unary call whose caller has been let in. The services are
// StreamedService, whose handlers are called before there is a message: a stranger's is never
// received. `handle`: Status(Request*, Reply*); what it throws is this call's error.
template <typename Request, typename Reply, typename Handle>
grpc::Status AnswerCall(grpc::ServerUnaryStreamer<Request, Reply>* call, const Handle& handle) {
  return ToGrpc(Guarded("a call between processes of a job", [&]() -> Status {
    Request request;
    if (!call->Read(&request)) {
      return InvalidArgument("a call without a message that can be read");
    }
    Reply reply;
    RETURN_IF_ERROR(handle(&request, &reply));
    const size_t bytes = reply.ByteSizeLong();
    if (bytes > static_cast<size_t>(kMaxMessageBytes)) {
      return TooLarge("an answer", bytes);
    }
    // With the status that follows; a caller that is gone needs neither.
    static_cast<void>(call->Write(reply, grpc::WriteOptions().set_last_message()));
    return Status();
  }));
}
// The same for a call that is answered with weights, in pieces. `handle`:
// Result<std::shared_ptr<const std::string>>(const Request&).
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

// The term that a call or an answer carries.
Term TermOf(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

// Repeats `call` while the other side cannot be reached, until `stop`. `fence`, of calls to a
// master: the call tells the latest term, and an answer with an earlier one counts as no answer.
Status CallWithRetry(const std::string& token, const std::string& context_name,
                     const std::stop_token& stop,
                     const std::function<grpc::Status(grpc::ClientContext*)>& call,
                     TermFence* fence = nullptr);

}  // namespace sluice::elastic
