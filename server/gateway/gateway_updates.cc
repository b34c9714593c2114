#include "server/gateway/gateway_updates_internal.h"

#include <fmt/core.h>

#include "executor/executor.h"
#include "server/gateway/gateway_wire_internal.h"

namespace sluice::server {
namespace {

// A session's SET statements travel with each of its scripts.
constexpr size_t kMaxSettings = 1'000;

}  // namespace

Status GatewayUpdates::Apply(const v1::RunUpdate& update, executor::ResultSink& sink) {
  switch (update.update_case()) {
    case v1::RunUpdate::kHeader: {
      ASSIGN_OR_RETURN(schema_, HeaderFromWire(update.header()));
      return sink.Header(*schema_);
    }
    case v1::RunUpdate::kRows: {
      if (!schema_) {
        return Unavailable("the gateway sent rows without a header");
      }
      RowBatch batch;
      RETURN_IF_ERROR(RowsFromWire(update.rows(), *schema_, &batch));
      return sink.Rows(batch);
    }
    case v1::RunUpdate::kNotice:
      sink.Notice(update.notice());
      return OkStatus();
    case v1::RunUpdate::kProgress:
      sink.Progress(ProgressFromWire(update.progress()));
      return OkStatus();
    case v1::RunUpdate::kStatementDone:
      EndScript();
      sink.Done(update.statement_done().tag());
      return OkStatus();
    case v1::RunUpdate::kSettingChanged:
      if (update.setting_changed() == "RESET ALL") {
        settings_.clear();
        return OkStatus();
      }
      if (settings_.size() >= kMaxSettings) {
        return ResourceExhausted(
            fmt::format("the gateway has changed {} settings of this session", kMaxSettings));
      }
      settings_.push_back(update.setting_changed());
      return OkStatus();
    case v1::RunUpdate::kOutlivingJob:
      outliving_job_ = update.outliving_job();
      sink.OutlivesClient(update.outliving_job());
      return OkStatus();
    case v1::RunUpdate::kError:
      return ErrorFromWire(update.error());
    case v1::RunUpdate::UPDATE_NOT_SET:
      break;  // an update from a newer gateway
  }
  return OkStatus();
}

}  // namespace sluice::server
