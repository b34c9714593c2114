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

std::string AddressOf(const std::string& host, int port) {
  const auto colons = std::count(host.begin(), host.end(), ':');
  const bool whole = host.starts_with("unix") || host.starts_with("[") || colons == 1;
  return whole        ? host
         : colons > 1 ? fmt::format("[{}]:{}", host, port)
                      : fmt::format("{}:{}", host, port);
}

namespace {

// Both ends present the same certificate, which both trust.
std::shared_ptr<grpc::ServerCredentials> ServerCredentialsOf(const JobKey& key) {
  if (!key.encrypts()) {
    return grpc::InsecureServerCredentials();
  }
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = key.certificate;
  options.pem_key_cert_pairs.push_back({key.private_key, key.certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentialsOf(const JobKey& key) {
  return key.encrypts() ? grpc::SslCredentials({key.certificate, key.private_key, key.certificate})
                        : grpc::InsecureChannelCredentials();
}

}  // namespace

Result<std::unique_ptr<RpcServer>> StartServer(const ServerLimits& limits, const std::string& host,
                                               const JobKey& key, grpc::Service* service,
                                               Acceptor::HandOn streams) {
  return RpcServer::Start(
      AddressOf(host, 0), limits, ServerCredentialsOf(key),
      [service](grpc::ServerBuilder& builder) { builder.RegisterService(service); },
      std::move(streams));
}

namespace {

constexpr int kPingMs = 1'000;
constexpr int kPingAnswerMs = 2'000;

bool IsOfThisMachine(const std::string& address) {
  return address.starts_with("unix") || address.starts_with("127.") ||
         address.starts_with("localhost:") || address.starts_with("[::1]");
}

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const JobKey& key) {
  grpc::ChannelArguments arguments;
  if (key.encrypts()) {
    arguments.SetSslTargetNameOverride(kJobName);  // pods have addresses, but no names
  }
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  RefuseCompression(&arguments);
  // Each link has a connection of its own, even between processes on one machine.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);  // the time for one attempt
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  if (!IsOfThisMachine(address)) {
    // A machine without power resets no connection: nothing else would end the calls to it before
    // their deadlines.
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMs);
    arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingAnswerMs);
    arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  }
  return grpc::CreateCustomChannel(address, ChannelCredentialsOf(key), arguments);
}

grpc::Status CheckToken(const grpc::ServerContext& context, const JobKey& key) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kTokenKey), build = metadata.find(kBuildKey);
  const auto text = [](const grpc::string_ref& value) {
    return std::string_view(value.data(), value.size());
  };
  // Programs that were linked without an id have none to say.
  return ToGrpc(found == metadata.end()
                    ? Status(Code::kPermissionDenied, "this process belongs to another job")
                    : CheckMember(key, text(found->second),
                                  build == metadata.end() ? BuildId() : text(build->second)));
}

void Prepare(grpc::ClientContext* context, const std::string& token) {
  context->AddMetadata(kTokenKey, token);
  if (!BuildId().empty()) {
    context->AddMetadata(kBuildKey, BuildId());
  }
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
