#include "server/gateway/gateway_client.h"

#include <fmt/core.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "base/sleep.h"
#include "elastic/transport/rpc_server_internal.h"
#include "executor/executor.h"
#include "server/config/config.h"
#include "server/gateway/client_login_internal.h"
#include "server/gateway/gateway.grpc.pb.h"
#include "server/gateway/gateway_updates_internal.h"
#include "server/gateway/gateway_wire_internal.h"

namespace sluice::server {
namespace {

constexpr std::chrono::seconds kConnectDeadline(5);
// A training may take days; keepalive detects a dead gateway.
constexpr std::chrono::hours kScriptDeadline(24 * 30);
// For the call's status, after the last message.
constexpr std::chrono::seconds kStatusDeadline(5);

Result<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const std::string& ca_file) {
  if (ca_file.empty()) {
    return grpc::InsecureChannelCredentials();
  }
  std::ifstream file(ca_file, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return NotFound(fmt::format("cannot read the certificate {}", ca_file));
  }
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = text.str();
  return grpc::SslCredentials(options);
}

// The gateway's own error for a failed call; nullopt: it was not reached, or is too old to send
// one.
std::optional<Status> ErrorFromGateway(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto said = metadata.find(kErrorMetadata);
  v1::Error error;
  return said != metadata.end() &&
                 error.ParseFromArray(said->second.data(), static_cast<int>(said->second.size()))
             ? std::optional(ErrorFromWire(error))
             : std::nullopt;
}

Status FromGrpc(const grpc::Status& status, const grpc::ClientContext& context) {
  if (status.ok()) {
    return OkStatus();
  }
  if (std::optional<Status> said = ErrorFromGateway(context)) {
    return *std::move(said);
  }
  if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED) {
    return Status(Code::kPermissionDenied, status.error_message()).SqlState("28000");
  }
  Status error(static_cast<Code>(status.error_code()), status.error_message());
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    return std::move(error).Hint(
        "the gateway has cut this client off (it ends, or waited too long for rows to be read), or "
        "sent what cannot be read");
  }
  return error;
}

class GrpcGatewayClient final : public GatewayClient {
 public:
  GrpcGatewayClient(std::unique_ptr<v1::Gateway::Stub> stub, const GatewayClientOptions& options)
      : stub_(std::move(stub)),
        user_(options.user),
        authorization_(
            options.password.empty() ? "" : BasicAuthorization(options.role, options.password)) {}

  Status CheckVersion(const std::string& address) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kConnectDeadline);
    LogIn(&context);
    v1::GetVersionResponse response;
    const grpc::Status status = stub_->GetVersion(&context, {}, &response);
    if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
        ErrorFromGateway(context).has_value()) {
      return FromGrpc(status, context);
    }
    if (status.ok() && response.wants_login() && authorization_.empty()) {
      return Status(Code::kPermissionDenied,
                    fmt::format("the gateway at {} asks for a password", address))
          .SqlState("28000")
          .Hint(
              "put it into PGPASSWORD or ~/.pgpass; --user says who you are, and to another "
              "machine --gateway-ca FILE talks TLS");
    }
    if (!status.ok()) {
      return Unavailable(
                 fmt::format("cannot reach a gateway at {}: {}", address, status.error_message()))
          .SqlState("08001")
          .Hint("start one: sluice serve --source URL --grpc HOST:PORT");
    }
    return OkStatus();
  }

  Status Run(const std::string& script, std::stop_token stop, executor::ResultSink& sink) override {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kScriptDeadline);
    LogIn(&context);
    const std::stop_callback<std::function<void()>> cancel(stop, [&] { context.TryCancel(); });
    v1::RunRequest request;
    request.set_script(script);
    request.set_user(user_);
    for (const std::string& setting : updates_.settings()) {
      request.add_settings(setting);
    }
    const auto reader = stub_->Run(&context, request);
    Status failure;
    v1::RunUpdate update;
    while (reader->Read(&update)) {
      if (failure.ok()) {
        failure = updates_.Apply(update, sink);
        if (!failure.ok()) {
          context.TryCancel();  // the rows cannot be shown, or this was the last update
        }
      }
    }
    const std::optional<int64_t> job = updates_.outliving_job();
    updates_.EndScript();
    const grpc::Status status = Finish(*reader, context);
    if (stop.stop_requested()) {
      return job.has_value() ? CancelJob(*job) : Cancelled("cancelled");
    }
    return failure.ok() ? FromGrpc(status, context) : failure;
  }

 private:
  void LogIn(grpc::ClientContext* context) const {
    if (!authorization_.empty()) {
      context->AddMetadata(kAuthorization, authorization_);
    }
  }

  Status CancelJob(int64_t job) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kConnectDeadline);
    LogIn(&context);
    v1::CancelJobRequest request;
    request.set_id(job);
    v1::CancelJobResponse response;
    return stub_->CancelJob(&context, request, &response).ok()
               ? Cancelled("cancelled")
               : Cancelled("cancelled")
                     .Hint(fmt::format("the gateway could not be reached: job {} continues until "
                                       "CANCEL JOB {}",
                                       job, job));
  }

  // A message that cannot be parsed ends the reading just as the last one does, but then the call's
  // status never comes.
  static grpc::Status Finish(grpc::ClientReader<v1::RunUpdate>& reader,
                             grpc::ClientContext& context) {
    const std::jthread watch([&](const std::stop_token& end) {
      if (SleepFor(kStatusDeadline, end)) {
        context.TryCancel();
      }
    });
    return reader.Finish();
  }

  const std::unique_ptr<v1::Gateway::Stub> stub_;
  const std::string user_;
  const std::string authorization_;
  GatewayUpdates updates_;
};

}  // namespace

Result<std::unique_ptr<GatewayClient>> GatewayClient::Connect(const GatewayClientOptions& options) {
  if (!options.password.empty() && options.ca_file.empty() && !IsLocalAddress(options.address)) {
    return Status(Code::kPermissionDenied,
                  fmt::format("a password is not sent in the clear to {}", options.address))
        .SqlState("28000")
        .Hint("--gateway-ca FILE talks TLS to the gateway");
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                   MakeCredentials(options.ca_file));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  elastic::RefuseCompression(&arguments);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  const std::shared_ptr<grpc::Channel> channel =
      grpc::CreateCustomChannel(options.address, credentials, arguments);
  auto client = std::make_unique<GrpcGatewayClient>(v1::Gateway::NewStub(channel), options);
  RETURN_IF_ERROR(client->CheckVersion(options.address));
  return std::unique_ptr<GatewayClient>(std::move(client));
}

}  // namespace sluice::server
