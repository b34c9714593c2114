// Before gRPC's headers: Abseil may define the annotation macros of base/mutex.h once more, but not
// the other way round.
#include "server/gateway_scripts.h"

#include <grpcpp/grpcpp.h>

#include <utility>

#include "catalog/data_source.h"
#include "executor/executor.h"
#include "parser/printer.h"
#include "server/gateway.grpc.pb.h"
#include "server/gateway_services_internal.h"
#include "server/gateway_wire_internal.h"
#include "server/version.h"

namespace sluice::server {
namespace {

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) {
    return grpc::Status::OK;
  }
  // The text travels in an HTTP/2 trailer, which peers limit to 8 KB in all.
  constexpr size_t kLongestMessage = 4'000;
  return {static_cast<grpc::StatusCode>(status.code()),
          status.ToString().substr(0, kLongestMessage)};
}

class StreamSink final : public executor::ResultSink {
 public:
  explicit StreamSink(grpc::ServerWriter<v1::RunUpdate>& writer) : writer_(writer) {}

  Status Header(const Schema& schema) override {
    v1::RunUpdate update;
    *update.mutable_header() = HeaderToWire(schema);
    return Send(update);
  }
  Status Rows(const RowBatch& batch) override {
    return RowsToWire(batch, [this](const v1::Rows& rows) {
      v1::RunUpdate update;
      *update.mutable_rows() = rows;
      return Send(update);
    });
  }
  // These three have nobody to tell of a lost client; the script is cancelled by then.
  void Notice(const std::string& message) override {
    v1::RunUpdate update;
    update.set_notice(message);
    writer_.Write(update);
  }
  void Progress(const elastic::Progress& progress) override {
    v1::RunUpdate update;
    *update.mutable_progress() = ProgressToWire(progress);
    writer_.Write(update);
  }
  void Done(const std::string& tag) override { tag_ = tag; }

  void Started(const parser::Statement& statement) {
    const auto* set = std::get_if<parser::SetStatement>(&statement);
    setting_ = set == nullptr ? "" : parser::Print(statement);
  }
  void Ended(std::string_view sql, double seconds) {
    v1::RunUpdate update;
    if (!setting_.empty()) {
      update.set_setting_changed(setting_);
      writer_.Write(update);
    }
    v1::StatementDone* done = update.mutable_statement_done();
    done->set_tag(tag_);
    done->set_sql(sql.data(), sql.size());
    done->set_seconds(seconds);
    writer_.Write(update);
  }

 private:
  Status Send(const v1::RunUpdate& update) {
    return writer_.Write(update) ? OkStatus() : Cancelled("the client went away");
  }
  grpc::ServerWriter<v1::RunUpdate>& writer_;
  std::string tag_;
  std::string setting_;
};

class GatewayService final : public v1::Gateway::Service {
 public:
  explicit GatewayService(GatewayScripts& scripts) : scripts_(scripts) {}

  grpc::Status Run(grpc::ServerContext* context, const v1::RunRequest* request,
                   grpc::ServerWriter<v1::RunUpdate>* writer) override {
    StreamSink sink(*writer);
    StatementObserver observer;
    observer.starts = [&sink](const parser::Statement& statement) { sink.Started(statement); };
    observer.ends = [&sink](std::string_view sql, double seconds) { sink.Ended(sql, seconds); };
    const std::vector<std::string> settings(request->settings().begin(), request->settings().end());
    const Status status = scripts_.Run(
        {request->script(), request->user(), &settings},
        [context] { return context->IsCancelled(); }, sink, observer);
    if (!status.ok()) {
      v1::RunUpdate update;
      *update.mutable_error() = ErrorToWire(status, request->script());
      writer->Write(update);
    }
    return ToGrpc(status);
  }

  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse* response) override {
    const auto list = [&]() -> Status {
      ASSIGN_OR_RETURN(const SourcePool::Lease source, scripts_.sources().Acquire());
      ASSIGN_OR_RETURN(const std::vector<catalog::Job> jobs, source->jobs().List());
      for (const catalog::Job& job : jobs) {
        JobToWire(job, response->add_jobs());
      }
      return OkStatus();
    };
    return ToGrpc(list());
  }

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::GetJobResponse* response) override {
    const auto get = [&]() -> Status {
      ASSIGN_OR_RETURN(const SourcePool::Lease source, scripts_.sources().Acquire());
      ASSIGN_OR_RETURN(const catalog::Job job, source->jobs().Find(request->id()));
      ASSIGN_OR_RETURN(const std::vector<catalog::JobEvent> events,
                       source->jobs().Events(request->id()));
      JobToWire(job, response->mutable_job());
      for (const catalog::JobEvent& event : events) {
        v1::JobEvent* wire = response->add_events();
        wire->set_micros(event.micros);
        wire->set_kind(event.kind);
        wire->set_detail(event.detail);
      }
      return OkStatus();
    };
    return ToGrpc(get());
  }

  grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                         v1::CancelJobResponse*) override {
    const auto cancel = [&]() -> Status {
      ASSIGN_OR_RETURN(const SourcePool::Lease source, scripts_.sources().Acquire());
      RETURN_IF_ERROR(source->jobs().Find(request->id()).status());
      return source->jobs().RequestCancel(request->id());
    };
    return ToGrpc(cancel());
  }

  grpc::Status GetVersion(grpc::ServerContext*, const v1::GetVersionRequest*,
                          v1::GetVersionResponse* response) override {
    response->set_version(kVersion);
    response->set_source(scripts_.sources().url());
    return grpc::Status::OK;
  }

 private:
  GatewayScripts& scripts_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeGatewayService(GatewayScripts& scripts) {
  return std::make_unique<GatewayService>(scripts);
}

}  // namespace sluice::server
