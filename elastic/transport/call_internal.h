#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/guarded.h"
#include "base/status.h"

// Included after ours: gRPC defines macros with the names of those in base/mutex.h.
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include "elastic/ids.h"
#include "elastic/transport/job_key.h"
#include "elastic/transport/message_limits.h"
#include "elastic/transport/rpc_server_internal.h"
#include "elastic/transport/status_codec_internal.h"

// Calls between processes of one job: authorisation, deadlines and errors. Included by the gRPC
// shells only.
namespace sluice::elastic {

// A process that does not answer for this long is treated as unreachable.
inline constexpr auto kCallDeadline = std::chrono::seconds(20);
inline constexpr char kTokenKey[] = "x-sluice-token";
inline constexpr char kBuildKey[] = "x-sluice-build";  // BuildId
// The term of the calling master, or the latest that the caller has seen.
inline constexpr char kTermKey[] = "x-sluice-term";

grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status, const std::string& context);

// `host`: any free port of it; or a whole address: "unix...:", "HOST:PORT" ("[HOST]:PORT").
Result<std::unique_ptr<RpcServer>> StartServer(const ServerLimits& limits, const std::string& host,
                                               const JobKey& key, grpc::Service* service,
                                               Acceptor::HandOn streams = nullptr);
// The address of a server that was started with that `host`.
std::string AddressOf(const std::string& host, int port);
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const JobKey& key);
// Refuses a caller without the job's token; between machines, where each may have an image of
// another build, also a caller of another build. Before its message is received: see AnswerCall.
grpc::Status CheckToken(const grpc::ServerContext& context, const JobKey& key);
void Prepare(grpc::ClientContext* context, const std::string& token);
// The term of a call or an answer; kNoTerm: none.
Term TermOf(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

// Receives and answers a unary call after its caller has been admitted. The services are
// StreamedService, whose handlers are called before the message arrives: a stranger's is never
// received. `handle`: Status(Request*, Reply*); an exception becomes this call's error.
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
    // Together with the status; a caller that is gone needs neither.
    static_cast<void>(call->Write(reply, grpc::WriteOptions().set_last_message()));
    return Status();
  }));
}

}  // namespace sluice::elastic
