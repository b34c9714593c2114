#include "executor/files/export_model.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "executor/files/model_file.h"
#include "executor/files/model_folder.h"
#include "executor/place_internal.h"
#include "executor/result_rows.h"
#include "models/registry/registry.h"
#include "models/trees/gradient_boosting.h"
#include "planner/plan.pb.h"
#include "planner/stored_plan.h"

namespace sluice::executor {
namespace {

std::string FullName(const catalog::ModelVersion& model) {
  return model.schema.empty() ? model.name : model.schema + "." + model.name;
}

// The stored weights, their copy in the file, and what XGBoost makes of them.
constexpr int64_t kCopiesOfExport = 4;

Result<std::string> LoadWeights(const catalog::ModelVersion& version, Context& context) {
  if (version.weights_bytes > context.memory_bytes() / kCopiesOfExport) {
    return ResourceExhausted(fmt::format("model '{}:{}' has weights of {} MiB, and the memory "
                                         "limit is {} MiB",
                                         version.name, version.version, version.weights_bytes >> 20,
                                         context.memory_bytes() >> 20))
        .SqlState("53200")
        .Hint("start Sluice with a larger --memory-limit");
  }
  return context.catalog.models().LoadWeights(version);
}

Result<std::string> XgboostFile(const catalog::ModelVersion& version,
                                const plan::ExportModelPlan& plan, Context& context,
                                ResultSink& sink) {
  ASSIGN_OR_RETURN(const plan::TrainPlan stored, planner::ReadStoredPlan(version.plan));
  const models::ModelType* type = models::FindModelType(stored.model().type());
  if (type == nullptr || type->family != models::ModelFamily::kTrees) {
    return Unimplemented(fmt::format("{} is a {}, and XGBoost's format holds boosted trees",
                                     FullName(version), version.type))
        .At(SpanOf(plan.file_place()))
        .Hint("EXPORT MODEL ... TO 'model.sluice' writes a model of any type");
  }
  ASSIGN_OR_RETURN(const std::string weights, LoadWeights(version, context));
  ASSIGN_OR_RETURN(const auto trees, models::GradientBoosting::Make(stored.model()));
  RETURN_IF_ERROR(trees->Load(weights));
  ASSIGN_OR_RETURN(models::GradientBoosting::Exported exported, trees->Export(stored.model()));
  for (const std::string& note : exported.notes) {
    sink.Notice(note);
  }
  if (stored.model().calibration().curves_size() > 0) {
    sink.Notice(
        "XGBoost gives the probabilities before their calibration, which is no part of "
        "its format");
  }
  return std::move(exported.json);
}

}  // namespace

Schema ExportedColumns() {
  return Schema{{{"model", DataType::kText, "text"},
                 {"version", DataType::kInt64, "bigint"},
                 {"type", DataType::kText, "text"},
                 {"file", DataType::kText, "text"},
                 {"bytes", DataType::kInt64, "bigint"}}};
}

Status ExecuteExportModel(const plan::ExportModelPlan& plan, Context& context, ResultSink& sink) {
  const plan::ModelReference& model = plan.model();
  const auto found = context.catalog.models().Find(
      model.schema(), model.name(),
      model.has_version() ? std::optional<int64_t>(model.version()) : std::nullopt);
  if (!found.ok()) {
    return found.status().MovedTo(SpanOf(model.place()));
  }
  const catalog::ModelVersion& version = *found;
  std::string bytes;
  if (plan.format() == plan::ExportModelPlan::XGBOOST) {
    ASSIGN_OR_RETURN(bytes, XgboostFile(version, plan, context, sink));
  } else {
    ASSIGN_OR_RETURN(const std::string weights, LoadWeights(version, context));
    bytes = WriteModelFile(version, weights);
  }
  Status written =
      ModelFolder(context.export_root).Write(plan.file(), bytes, plan.overwrite(), context.stop);
  if (written.code() == Code::kAlreadyExists) {
    written = std::move(written).Hint("EXPORT MODEL ... OVERWRITE TO replaces it");
  }
  if (!written.ok()) {
    return written.MovedTo(SpanOf(plan.file_place()));
  }
  ResultRows rows(ExportedColumns());
  rows.Add({FullName(version), version.version, version.type, plan.file(),
            static_cast<int64_t>(bytes.size())});
  RETURN_IF_ERROR(rows.SendTo(sink));
  sink.Done("EXPORT MODEL");
  return OkStatus();
}

}  // namespace sluice::executor
