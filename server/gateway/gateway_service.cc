// Include before gRPC's headers: Abseil tolerates that the annotation macros of base/mutex.h are
// already defined, but not the reverse.
#include "base/utf8.h"
#include "server/gateway/gateway_scripts.h"

#include <fmt/core.h>

#include <memory>
#include <tuple>
#include <utility>

#include "base/guarded.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "parser/printer.h"
#include "server/config/terminal.h"
#include "server/config/version.h"
#include "server/gateway/client_login_internal.h"
#include "server/gateway/gateway.grpc.pb.h"
#include "server/gateway/gateway_services_internal.h"
#include "server/gateway/gateway_wire_internal.h"
#include "server/statements/plain_statement.h"

namespace sluice::server {
namespace {

// The status carries text for clients that show it as it is, and the error itself for our own
// client.
grpc::Status ToGrpc(grpc::ServerContext* context, const Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  // These travel in an HTTP/2 trailer, which peers limit to 8 KB in all.
  constexpr size_t kLongestMessage = 3'000;
  constexpr size_t kLongestError = 2'000;  // base64 makes it a third longer
  const std::string error = ErrorToWire(status, "").SerializeAsString();
  if (error.size() <= kLongestError) {
    context->AddTrailingMetadata(kErrorMetadata, error);
  }
  const bool login = status.sqlstate().starts_with("28");
  return {login ? grpc::StatusCode::UNAUTHENTICATED : static_cast<grpc::StatusCode>(status.code()),
          status.ToString().substr(0, kLongestMessage)};
}

class StreamSink final : public executor::ResultSink {
 public:
  explicit StreamSink(ClientStream& stream) : stream_(stream) {}

  Status Header(const Schema& schema) override {
    auto update = std::make_unique<v1::RunUpdate>();
    *update->mutable_header() = HeaderToWire(schema);
    return stream_.Send(std::move(update));
  }
  Status Rows(const RowBatch& batch) override {
    return RowsToWire(batch, [this](v1::Rows&& rows) {
      auto update = std::make_unique<v1::RunUpdate>();
      *update->mutable_rows() = std::move(rows);
      return stream_.Send(std::move(update));
    });
  }
  void Notice(const std::string& message) override {
    auto update = std::make_unique<v1::RunUpdate>();
    update->set_notice(ValidUtf8(message));
    stream_.Notify(std::move(update));
  }
  void Progress(const elastic::Progress& progress) override {
    auto update = std::make_unique<v1::RunUpdate>();
    *update->mutable_progress() = ProgressToWire(progress);
    stream_.Show(std::move(update));
  }
  void Done(const std::string& tag) override { tag_ = tag; }
  void OutlivesClient(int64_t job) override {
    auto update = std::make_unique<v1::RunUpdate>();
    update->set_outliving_job(job);
    stream_.Notify(std::move(update));
  }

  void Started(const parser::Statement& statement) {
    const auto* plain = std::get_if<parser::PlainStatement>(&statement);
    setting_ = std::holds_alternative<parser::SetStatement>(statement) ? parser::Print(statement)
               : plain != nullptr && ChangesSession(*plain)            ? plain->text
                                                                       : "";
  }
  // The result is ignored: when the client is lost, the script has been cancelled.
  void Ended(std::string_view sql, double seconds) {
    if (!setting_.empty()) {
      auto update = std::make_unique<v1::RunUpdate>();
      update->set_setting_changed(setting_);
      std::ignore = stream_.Send(std::move(update));
    }
    auto update = std::make_unique<v1::RunUpdate>();
    v1::StatementDone* done = update->mutable_statement_done();
    done->set_tag(tag_);
    done->set_sql(sql.data(), sql.size());
    done->set_seconds(seconds);
    std::ignore = stream_.Send(std::move(update));
  }

 private:
  ClientStream& stream_;
  std::string tag_;
  std::string setting_;
};

class GatewayService final
    : public v1::Gateway::WithSplitStreamingMethod_Run<v1::Gateway::Service> {
 public:
  GatewayService(GatewayScripts& scripts, FirstMessages& first, Strangers& strangers)
      : scripts_(scripts), first_(first), strangers_(strangers) {}

  grpc::Status StreamedRun(
      grpc::ServerContext* context,
      grpc::ServerSplitStreamer<v1::RunRequest, v1::RunUpdate>* call) override {
    v1::RunRequest message;
    const v1::RunRequest* const request = &message;
    const auto run = [&]() -> Status {
      ASSIGN_OR_RETURN(Login login, LoginOf(*context));
      RETURN_IF_ERROR(ReadRequest(context, call, first_, &message, &v1::RunRequest::script));
      const SteadyClock clock;
      ClientStream stream(CallOf(context, call), clock, scripts_.write_seconds());
      StreamSink sink(stream);
      const StatementObserver observer = ObserverFor(sink);
      GatewayScripts::Client client;
      client.is_gone = [&stream] { return stream.IsGone(); };
      client.ended = [&](const Status& status) {
        if (!status.ok()) {
          auto update = std::make_unique<v1::RunUpdate>();
          *update->mutable_error() = ErrorToWire(status, request->script());
          std::ignore = stream.Send(std::move(update));
        }
        stream.Drain();
      };
      const std::vector<std::string> settings(request->settings().begin(),
                                              request->settings().end());
      return scripts_.Run({request->script(), std::move(login), request->user(), &settings}, client,
                          sink, observer);
    };
    return ToGrpc(context, Guarded("Gateway.Run", run));
  }

  grpc::Status ListJobs(grpc::ServerContext* context, const v1::ListJobsRequest*,
                        v1::ListJobsResponse* response) override {
    const auto list = [&]() -> Status {
      ASSIGN_OR_RETURN(const Login login, LoginOf(*context));
      return scripts_.Call(login, "SHOW JOBS", 0, [&](catalog::Catalog& catalog) -> Status {
        ASSIGN_OR_RETURN(const std::vector<catalog::Job> jobs, catalog.jobs().List());
        for (const catalog::Job& job : jobs) {
          JobToWire(job, response->add_jobs());
        }
        return OkStatus();
      });
    };
    return ToGrpc(context, Guarded("Gateway.ListJobs", list));
  }

  grpc::Status GetJob(grpc::ServerContext* context, const v1::GetJobRequest* request,
                      v1::GetJobResponse* response) override {
    const int64_t id = request->id();
    const auto read = [&](catalog::Catalog& catalog) -> Status {
      ASSIGN_OR_RETURN(const catalog::Job job, catalog.jobs().Find(id));
      ASSIGN_OR_RETURN(const std::vector<catalog::JobEvent> events, catalog.jobs().Events(id));
      JobToWire(job, response->mutable_job());
      for (const catalog::JobEvent& event : events) {
        v1::JobEvent* wire = response->add_events();
        wire->set_micros(event.micros);
        wire->set_kind(event.kind);
        wire->set_detail(event.detail);
      }
      return OkStatus();
    };
    const auto get = [&]() -> Status {
      ASSIGN_OR_RETURN(const Login login, LoginOf(*context));
      return scripts_.Call(login, fmt::format("SHOW JOB {}", id), id, read);
    };
    return ToGrpc(context, Guarded("Gateway.GetJob", get));
  }

  grpc::Status CancelJob(grpc::ServerContext* context, const v1::CancelJobRequest* request,
                         v1::CancelJobResponse*) override {
    const int64_t id = request->id();
    const auto ask = [id](catalog::Catalog& catalog) -> Status {
      RETURN_IF_ERROR(catalog.jobs().Find(id).status());
      return catalog.jobs().RequestCancel(id);
    };
    const auto cancel = [&]() -> Status {
      ASSIGN_OR_RETURN(const Login login, LoginOf(*context));
      return scripts_.Call(login, fmt::format("CANCEL JOB {}", id), id, ask);
    };
    return ToGrpc(context, Guarded("Gateway.CancelJob", cancel));
  }

  grpc::Status GetVersion(grpc::ServerContext* context, const v1::GetVersionRequest*,
                          v1::GetVersionResponse* response) override {
    const auto get = [&]() -> Status {
      response->set_version(kVersion);
      ASSIGN_OR_RETURN(const Login login, SentLogin(*context, scripts_.encrypted()));
      strangers_.BeginCall(context->peer());
      RETURN_IF_ERROR(scripts_.Admits());
      response->set_wants_login(scripts_.sources().auth() != Auth::kTrust);
      if (response->wants_login()) {
        if (login.role.empty()) {
          return OkStatus();  // an unknown client learns nothing more
        }
        RETURN_IF_ERROR(scripts_.sources().Acquire(login).status());
      }
      strangers_.Welcome(context->peer());
      response->set_source(scripts_.served_url());
      return OkStatus();
    };
    return ToGrpc(context, Guarded("Gateway.GetVersion", get));
  }

 private:
  Result<Login> LoginOf(const grpc::ServerContext& context) {
    ASSIGN_OR_RETURN(Login login, SentLogin(context, scripts_.encrypted()));
    RETURN_IF_ERROR(AdmitStranger(context, login, scripts_, strangers_));
    return login;
  }

  GatewayScripts& scripts_;
  FirstMessages& first_;
  Strangers& strangers_;
};

}  // namespace

Result<Login> SentLogin(const grpc::ServerContext& context, bool encrypted) {
  const auto& metadata = context.client_metadata();
  const auto sent = metadata.find(kAuthorization);
  return ReadLogin(sent == metadata.end()
                       ? std::string_view()
                       : std::string_view(sent->second.data(), sent->second.size()),
                   context.peer(), encrypted);
}

Status AdmitStranger(const grpc::ServerContext& context, const Login& login,
                     GatewayScripts& scripts, Strangers& strangers) {
  const std::string peer = context.peer();
  const bool stranger = strangers.BeginCall(peer);
  if (context.IsCancelled()) {  // nobody waits for what a login would cost
    return Cancelled("the call was cancelled");
  }
  RETURN_IF_ERROR(scripts.Admits());
  if (!stranger) {
    return OkStatus();
  }
  if (scripts.sources().auth() != Auth::kTrust) {
    RETURN_IF_ERROR(scripts.sources().Acquire(login).status());
  }
  strangers.Welcome(peer);
  return OkStatus();
}

std::unique_ptr<grpc::Service> MakeGatewayService(GatewayScripts& scripts, FirstMessages& first,
                                                  Strangers& strangers) {
  return std::make_unique<GatewayService>(scripts, first, strangers);
}

}  // namespace sluice::server
