#include "server/statements/model_statements.h"

#include <fmt/core.h>

#include "catalog/data_source.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "executor/result_rows.h"
#include "planner/plan.pb.h"
#include "planner/stored_plan.h"
#include "server/statements/model_description.h"
#include "server/statements/session.h"

namespace sluice::server {
namespace {

const ColumnInfo kModelColumn{"model", DataType::kText, "text"};
const ColumnInfo kVersionColumn{"version", DataType::kInt64, "bigint"};

std::string FullName(const catalog::ModelVersion& model) {
  return model.schema.empty() ? model.name : model.schema + "." + model.name;
}

// The catalog does not know where the name stood in the script.
Status AtModel(Status status, const parser::ModelName& model) {
  if (!status.ok() && !status.diagnostics().back().span.valid()) {
    return std::move(status).At(model.span);
  }
  return status;
}

Result<catalog::ModelVersion> FindModel(const parser::ModelName& model, Session& session) {
  auto found = session.source().models().Find(model.schema, model.name, model.version);
  if (!found.ok()) {
    return AtModel(found.status(), model);
  }
  return found;
}

// The one figure that a list shows: the first of the task, which is the one that is optimised for.
Value MainMetric(const catalog::ModelVersion& model) {
  if (model.metrics.empty()) {
    return std::monostate{};
  }
  const auto& [name, value] = model.metrics.front();
  return fmt::format("{} {:.4f}", name, value);
}

}  // namespace

Status ShowModels(Session& session, executor::ResultSink& sink) {
  ASSIGN_OR_RETURN(const std::vector<catalog::ModelVersion> models,
                   session.source().models().List());
  executor::ResultRows rows(Schema{{kModelColumn,
                                    kVersionColumn,
                                    {"type", DataType::kText, "text"},
                                    {"rows", DataType::kInt64, "bigint"},
                                    {"metric", DataType::kText, "text"},
                                    {"created", DataType::kTimestamp, "timestamp"}}});
  for (const catalog::ModelVersion& model : models) {
    rows.Add({FullName(model), model.version, model.type, model.rows_per_epoch, MainMetric(model),
              model.created_micros});
  }
  return rows.SendTo(sink);
}

Status ShowModelVersions(const parser::ModelName& model, Session& session,
                         executor::ResultSink& sink) {
  RETURN_IF_ERROR(FindModel(model, session).status());
  ASSIGN_OR_RETURN(const std::vector<catalog::ModelVersion> versions,
                   session.source().models().Versions(model.schema, model.name));
  executor::ResultRows rows(Schema{{kModelColumn,
                                    kVersionColumn,
                                    {"live", DataType::kBool, "boolean"},
                                    {"type", DataType::kText, "text"},
                                    {"rows", DataType::kInt64, "bigint"},
                                    {"metric", DataType::kText, "text"},
                                    {"job", DataType::kInt64, "bigint"},
                                    {"bytes", DataType::kInt64, "bigint"},
                                    {"created", DataType::kTimestamp, "timestamp"}}});
  for (const catalog::ModelVersion& version : versions) {
    if (model.version && *model.version != version.version) {
      continue;
    }
    rows.Add({FullName(version), version.version, version.live, version.type,
              version.rows_per_epoch, MainMetric(version), version.job, version.weights_bytes,
              version.created_micros});
  }
  return rows.SendTo(sink);
}

Status ShowTrain(const parser::ModelName& model, Session& session, executor::ResultSink& sink) {
  ASSIGN_OR_RETURN(const catalog::ModelVersion version, FindModel(model, session));
  executor::ResultRows rows(
      Schema{{{"Model", DataType::kText, "text"}, {"Train Statement", DataType::kText, "text"}}});
  rows.Add({FullName(version), version.statement});
  return rows.SendTo(sink);
}

Status DescribeModel(const parser::ModelName& model, Session& session, executor::ResultSink& sink) {
  ASSIGN_OR_RETURN(const catalog::ModelVersion version, FindModel(model, session));
  Result<plan::TrainPlan> plan = planner::ReadStoredPlan(version.plan);
  if (!plan.ok()) {
    return plan.status().At(model.span);
  }
  executor::ResultRows rows(Schema{{{"section", DataType::kText, "text"},
                                    {"name", DataType::kText, "text"},
                                    {"value", DataType::kText, "text"}}});
  for (const DescriptionLine& line : DescribeVersion(version, *plan)) {
    rows.Add({line.section, line.name, line.value});
  }
  return rows.SendTo(sink);
}

Status DropModel(const parser::DropModelStatement& statement, Session& session,
                 executor::ResultSink& sink) {
  const parser::ModelName& model = statement.model;
  const Status dropped = session.source().models().Drop(model.schema, model.name, model.version);
  if (dropped.code() == Code::kNotFound && statement.if_exists) {
    sink.Notice(fmt::format("model {} does not exist: nothing to drop", model.name));
  } else if (!dropped.ok()) {
    return AtModel(dropped, model);
  }
  sink.Done("DROP MODEL");
  return OkStatus();
}

Status AlterModel(const parser::AlterModelStatement& statement, Session& session,
                  executor::ResultSink& sink) {
  const parser::ModelName& model = statement.model;
  catalog::ModelStore& models = session.source().models();
  RETURN_IF_ERROR(AtModel(statement.promote
                              ? models.Promote(model.schema, model.name, *statement.promote)
                              : models.Rollback(model.schema, model.name),
                          model));
  ASSIGN_OR_RETURN(const catalog::ModelVersion live,
                   models.Find(model.schema, model.name, std::nullopt));
  sink.Notice(fmt::format("version {} of {} is live now", live.version, FullName(live)));
  sink.Done("ALTER MODEL");
  return OkStatus();
}

}  // namespace sluice::server
