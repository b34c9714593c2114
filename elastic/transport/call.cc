#include "elastic/transport/call_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace sluice::elastic {

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  StatusProto details;
  ToProto(status, &details);
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), status.message(),
                      details.SerializeAsString());
}

Status FromGrpc(const grpc::Status& status, const std::string& context) {
  if (status.ok()) {
    return Status();
  }
  StatusProto details;
  if (!status.error_details().empty() && details.ParseFromString(status.error_details()) &&
      details.diagnostics_size() > 0) {
    return FromProto(details);
  }
  return Status(ErrorCode(status.error_code()),
                fmt::format("{}: {}", context, status.error_message()));
}

Status TooLarge(const char* what, size_t bytes) {
  return ResourceExhausted(fmt::format("{} of {} bytes between two processes of a job; {} are "
                                       "allowed",
                                       what, bytes, kMaxMessageBytes))
      .Hint("with engine.num_ps each parameter server has a smaller part of the model");
}

std::string AddressOf(const std::string& host, int port) {
  const auto colons = std::count(host.begin(), host.end(), ':');
  const bool whole = host.starts_with("unix") || host.starts_with("[") || colons == 1;
  return whole        ? host
         : colons > 1 ? fmt::format("[{}]:{}", host, port)
                      : fmt::format("{}:{}", host, port);
}

Result<std::unique_ptr<RpcServer>> StartServer(const ServerLimits& limits, const std::string& host,
                                               grpc::Service* service) {
  return RpcServer::Start(
      AddressOf(host, 0), limits, grpc::InsecureServerCredentials(),
      [service](grpc::ServerBuilder& builder) { builder.RegisterService(service); });
}

namespace {

constexpr int kPingMs = 1'000;
constexpr int kPingAnswerMs = 2'000;

bool IsOfThisMachine(const std::string& address) {
  return address.starts_with("unix") || address.starts_with("127.") ||
         address.starts_with("localhost:") || address.starts_with("[::1]");
}

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  RefuseCompression(&arguments);
  // Each link has a connection of its own: processes on one machine share nothing else either.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);  // that an attempt may take
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  if (!IsOfThisMachine(address)) {
    // A machine that has lost its power resets no connection: nothing else would end the calls to
    // it before their deadlines.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

grpc::Status CheckToken(const grpc::ServerContext& context, const std::string& token) {
  const auto found = context.client_metadata().find(kTokenKey);
  if (found == context.client_metadata().end() ||
      std::string_view(found->second.data(), found->second.size()) != token) {
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "this process belongs to another job");
  }
  return grpc::Status::OK;
}

void Prepare(grpc::ClientContext* context, const std::string& token) {
  context->AddMetadata(kTokenKey, token);
  context->set_deadline(std::chrono::system_clock::now() + kCallDeadline);
}

Term TermOf(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  const auto found = metadata.find(kTermKey);
  int64_t term = 0;
  if (found != metadata.end()) {
    const grpc::string_ref text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), term);
  }
  return std::max(Term(term), kNoTerm);
}

}  // namespace sluice::elastic
