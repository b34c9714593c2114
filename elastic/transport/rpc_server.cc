#include "elastic/transport/rpc_server_internal.h"

#include <fmt/core.h>
#include <grpcpp/resource_quota.h>
#include <sys/socket.h>

#include <utility>

#include "elastic/transport/message_stream_internal.h"

namespace sluice::elastic {
namespace {

// From the first byte to HTTP/2's settings, including a TLS handshake.
constexpr int kHandshakeMs = 10'000;
// Concurrent calls on one connection; our clients make a few.
constexpr int kMaxStreams = 128;
// Of a call's headers; ours are a token and a term.
constexpr int kMaxHeaderBytes = 16 << 10;
// Detects a client that has vanished (a pulled cable).
constexpr int kKeepaliveMs = 10'000;
constexpr int kKeepaliveTimeoutMs = 5'000;
// The shortest interval at which clients may ping an idle connection.
constexpr int kMinPingIntervalMs = 5'000;
constexpr int kOwnMinPingIntervalMs = 500;

void SetUp(const ServerLimits& limits, grpc::ServerBuilder* builder) {
  grpc::ResourceQuota quota(limits.name);
  quota.Resize(limits.memory_bytes);
  if (limits.max_threads > 0) {
    quota.SetMaxThreads(limits.max_threads);
  }
  builder->SetResourceQuota(quota);
  builder->SetMaxReceiveMessageSize(limits.max_request_bytes);
  builder->SetMaxSendMessageSize(limits.max_answer_bytes);
  builder->SetDefaultCompressionAlgorithm(GRPC_COMPRESS_NONE);
  // A call that announces compression is refused; one that compresses without announcing it is not
  // decompressed, and fails to parse.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxHeaderBytes);
  if (limits.max_unread_bytes > 0) {
    builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, limits.max_unread_bytes);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  }
  if (limits.max_idle_ms > 0) {
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                                kMinPingIntervalMs);
    builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, limits.max_idle_ms);
  } else {
    // The clients are ours, and ping while they wait for an answer (OpenChannel).
    builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                                kOwnMinPingIntervalMs);
    builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  }
}

bool BeginsStream(const Socket& connection) {
  char byte = 0;
  return recv(connection.descriptor(), &byte, 1, MSG_PEEK) == 1 && byte == kStreamByte;
}

}  // namespace

Result<std::unique_ptr<RpcServer>> RpcServer::Start(
    const std::string& address, const ServerLimits& limits,
    const std::shared_ptr<grpc::ServerCredentials>& credentials,
    const std::function<void(grpc::ServerBuilder& builder)>& add_services, Acceptor::HandOn streams,
    std::function<bool(const Socket& connection)> admits) {
  std::unique_ptr<RpcServer> server(new RpcServer());
  ASSIGN_OR_RETURN(server->acceptor_, Acceptor::Listen(address));
  server->port_ = server->acceptor_->port();
  grpc::ServerBuilder builder;
  SetUp(limits, &builder);
  add_services(builder);
  server->connections_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return Unavailable(fmt::format("the {} cannot be started on {}", limits.name, address));
  }
  server->acceptor_->Start([raw = server.get(), streams = std::move(streams),
                            admits = std::move(admits)](Socket connection) {
    if (streams != nullptr && BeginsStream(connection)) {
      streams(std::move(connection));
      return;
    }
    if (admits != nullptr && !admits(connection)) {
      return;
    }
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
    parameters.fd = connection.Release();
    raw->connections_->HandleNewConnection(&parameters);
  });
  return server;
}

RpcServer::~RpcServer() {
  Shutdown(std::chrono::milliseconds(0));
}

void RpcServer::Shutdown(std::chrono::milliseconds grace) {
  acceptor_.reset();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + grace);
    server_->Wait();
    server_.reset();
  }
}

void RefuseCompression(grpc::ChannelArguments* arguments) {
  arguments->SetCompressionAlgorithm(GRPC_COMPRESS_NONE);
  arguments->SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  arguments->SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
}

}  // namespace sluice::elastic
