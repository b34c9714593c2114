#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/transport/acceptor.h"

#include <grpcpp/grpcpp.h>

// How every gRPC server of our processes is set up, since anybody may reach its address. Include it
// after base/mutex.h: Abseil may define those macros once more, but not the other way round.
namespace sluice::elastic {

// What a server expects of those who call it.
struct ServerLimits {
  const char* name = "";  // of its resource quota
  int max_request_bytes = 0;
  int max_answer_bytes = -1;  // -1: whatever the handlers send
  // Of requests that are on their way in, of all connections together.
  size_t memory_bytes = 0;
  // Of the synchronous API: one for each call that runs. gRPC refuses a call beyond it without a
  // word, so a limit that is told readably has to come first. 0: no limit.
  int max_threads = 0;
  // Ends a connection without a call, and one whose other end has vanished without closing it. 0:
  // those who connect are ours, keep their connections, and have deadlines on their calls.
  int max_idle_ms = 0;
};

// A gRPC server behind an Acceptor. Messages are never decompressed (a megabyte of gzip is a
// gigabyte of zeros): a call with a compressed message ends with UNIMPLEMENTED.
class RpcServer {
 public:
  // `address` as for the Acceptor. `add_services` registers what it serves, and outlives the call
  // only.
  static Result<std::unique_ptr<RpcServer>> Start(
      const std::string& address, const ServerLimits& limits,
      const std::shared_ptr<grpc::ServerCredentials>& credentials,
      const std::function<void(grpc::ServerBuilder& builder)>& add_services);
  ~RpcServer();  // as Shutdown without a grace

  int port() const { return port_; }
  // Takes no more calls; cancels those that still run after so long, and waits for their handlers.
  // Idempotent.
  void Shutdown(std::chrono::milliseconds grace);

 private:
  RpcServer() = default;

  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<Acceptor> acceptor_;  // last: it uses the others
  int port_ = 0;
};

// The same at the other end: an answer is not decompressed either.
void RefuseCompression(grpc::ChannelArguments* arguments);

}  // namespace sluice::elastic
