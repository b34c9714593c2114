#include "server/gateway/gateway_updates_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>

#include "base/letter_case.h"
#include "executor/executor.h"
#include "server/gateway/gateway_wire_internal.h"
#include "server/pgwire/sql/prepared_text.h"
#include "server/pgwire/sql/router.h"

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
      return Remember(update.setting_changed());
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

Status GatewayUpdates::Remember(const std::string& statement) {
  std::istringstream words(UpperAscii(statement));
  std::string verb, what;
  words >> verb >> what;
  const std::optional<std::string> deallocated = pgwire::DeallocatedName(statement);
  if (deallocated.has_value() || (verb == "RESET" && what == "ALL")) {
    const bool settings = !deallocated.has_value() || verb == "DISCARD";
    const auto undone = [&](const std::string& kept) {
      const std::optional<pgwire::PrepareOfOurs> prepare = pgwire::ReadPrepareOfOurs(kept);
      const bool prepared = prepare.has_value() && prepare->head.has_value();
      return prepared ? deallocated.has_value() &&
                            (deallocated->empty() || *deallocated == prepare->head->name)
                      : settings;
    };
    settings_.erase(std::remove_if(settings_.begin(), settings_.end(), undone), settings_.end());
    return OkStatus();
  }
  if (settings_.size() >= kMaxSettings) {
    return ResourceExhausted(
        fmt::format("the gateway has changed {} settings of this session", kMaxSettings));
  }
  settings_.push_back(statement);
  return OkStatus();
}

}  // namespace sluice::server
