#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/transport/acceptor.h"

#include <grpcpp/grpcpp.h>

// The common setup of all gRPC servers of our processes, since strangers may reach their addresses.
// Include it after base/mutex.h: Abseil may redefine those macros, but not the other way round.
namespace sluice::elastic {

// A server's limits for its clients.
struct ServerLimits {
  const char* name = "";  // of its resource quota
  int max_request_bytes = 0;
  int max_answer_bytes = -1;  // -1: unlimited, as the handlers send
  // For incoming requests, over all connections together.
  size_t memory_bytes = 0;
  // For the synchronous API: one for each running call. gRPC refuses further calls without a
  // message, so a limit with a readable error has to be lower. 0: no limit.
  int max_threads = 0;
  // Ends a connection without a call, and one whose other end has vanished without closing it. 0:
  // the clients are ours, keep their connections, and have deadlines on their calls.
  int max_idle_ms = 0;
  // Of a message, that its client may send before the handler reads it. 0: gRPC's own choice, which
  // grows with the speed of the connection.
  int max_unread_bytes = 0;
};

// A gRPC server behind an Acceptor. Messages are never decompressed (a megabyte of gzip is a
// gigabyte of zeros): a call with a compressed message ends with UNIMPLEMENTED.
class RpcServer {
 public:
  // `address` as for the Acceptor. `add_services` registers the services, and only needs to outlive
  // the call. `streams`: gets the connections that are message streams; none are accepted without.
  // `admits`: asked of each of the others, on the acceptor's thread, before gRPC gets it; false
  // closes it.
  static Result<std::unique_ptr<RpcServer>> Start(
      const std::string& address, const ServerLimits& limits,
      const std::shared_ptr<grpc::ServerCredentials>& credentials,
      const std::function<void(grpc::ServerBuilder& builder)>& add_services,
      Acceptor::HandOn streams = nullptr,
      std::function<bool(const Socket& connection)> admits = nullptr);
  ~RpcServer();  // like Shutdown without a grace period

  int port() const { return port_; }
  // Accepts no more calls; cancels those still running after `grace`, and waits for their handlers.
  // Idempotent.
  void Shutdown(std::chrono::milliseconds grace);

 private:
  RpcServer() = default;

  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> connections_;
  std::unique_ptr<Acceptor> acceptor_;  // last: uses the members above
  int port_ = 0;
};

// The same for a client: answers are not decompressed either.
void RefuseCompression(grpc::ChannelArguments* arguments);

}  // namespace sluice::elastic
