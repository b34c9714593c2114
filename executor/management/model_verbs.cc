#include "executor/management/model_verbs.h"

#include <fmt/core.h>

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "executor/management/model_description.h"
#include "executor/place_internal.h"
#include "executor/result_rows.h"
#include "executor/scoring/scorer.h"
#include "models/registry/registry.h"
#include "planner/plan.pb.h"
#include "planner/stored_plan.h"

namespace sluice::executor {
namespace {

const ColumnInfo kModelColumn{"model", DataType::kText, "text"};
const ColumnInfo kVersionColumn{"version", DataType::kInt64, "bigint"};

std::string FullName(const catalog::ModelVersion& model) {
  return model.schema.empty() ? model.name : model.schema + "." + model.name;
}

// The catalog does not know the name's place in the script.
Status AtModel(Status status, const plan::ModelReference& model) {
  if (!status.ok() && !status.diagnostics().back().span.valid()) {
    return std::move(status).At(SpanOf(model.place()));
  }
  return status;
}

std::optional<int64_t> VersionOf(const plan::ModelReference& model) {
  return model.has_version() ? std::optional<int64_t>(model.version()) : std::nullopt;
}

Result<catalog::ModelVersion> FindModel(const plan::ModelReference& model, Context& context,
                                        catalog::ModelRight right) {
  auto found =
      context.catalog.models().FindFor(right, model.schema(), model.name(), VersionOf(model));
  if (!found.ok()) {
    return AtModel(found.status(), model);
  }
  return found;
}

catalog::ModelStore& StoreOf(bool types, Context& context) {
  return types ? context.catalog.model_types() : context.catalog.models();
}

// Changes of models would survive a ROLLBACK.
Status CheckNoTransaction(const plan::Place& place, Context& context) {
  Status outside = context.source.CheckNoTransaction();
  return outside.ok() ? outside : std::move(outside).At(SpanOf(place));
}

// The one metric that a list shows: the task's first one, which is also the one that is optimised.
Value MainMetric(const catalog::ModelVersion& model) {
  if (model.metrics.empty()) {
    return std::monostate{};
  }
  const auto& [name, value] = model.metrics.front();
  return fmt::format("{} {:.6g}", name, value);
}

}  // namespace

Status ShowModels(Context& context, ResultSink& sink) {
  ASSIGN_OR_RETURN(const std::vector<catalog::ModelVersion> models,
                   context.catalog.models().List());
  ResultRows rows(Schema{{kModelColumn,
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

Status ShowModelVersions(const plan::ModelReference& model, Context& context, ResultSink& sink) {
  RETURN_IF_ERROR(FindModel(model, context, catalog::ModelRight::kUsage).status());
  ASSIGN_OR_RETURN(const std::vector<catalog::ModelVersion> versions,
                   context.catalog.models().Versions(model.schema(), model.name()));
  ResultRows rows(Schema{{kModelColumn,
                          kVersionColumn,
                          {"live", DataType::kBool, "boolean"},
                          {"type", DataType::kText, "text"},
                          {"rows", DataType::kInt64, "bigint"},
                          {"metric", DataType::kText, "text"},
                          {"job", DataType::kInt64, "bigint"},
                          {"bytes", DataType::kInt64, "bigint"},
                          {"created", DataType::kTimestamp, "timestamp"}}});
  for (const catalog::ModelVersion& version : versions) {
    if (model.has_version() && model.version() != version.version) {
      continue;
    }
    rows.Add({FullName(version), version.version, version.live, version.type,
              version.rows_per_epoch, MainMetric(version), version.job, version.weights_bytes,
              version.created_micros});
  }
  return rows.SendTo(sink);
}

Status ShowTrain(const plan::ModelReference& model, Context& context, ResultSink& sink) {
  ASSIGN_OR_RETURN(const catalog::ModelVersion version,
                   FindModel(model, context, catalog::ModelRight::kInspect));
  ResultRows rows(
      Schema{{{"Model", DataType::kText, "text"}, {"Train Statement", DataType::kText, "text"}}});
  rows.Add({FullName(version), version.statement});
  return rows.SendTo(sink);
}

// Each feature's share of the gain of all splits. Empty if it is not known, or if loading the
// weights would cost too much for a description.
std::map<std::string, double> SharesOfGain(const catalog::ModelVersion& version,
                                           const plan::TrainPlan& plan, Context& context) {
  constexpr int64_t kMaxBytes = int64_t{64} << 20;
  const models::ModelType* type = models::FindModelType(plan.model().type());
  if (type == nullptr || type->family != models::ModelFamily::kTrees ||
      version.weights_bytes > kMaxBytes) {
    return {};
  }
  const auto scorer = Scorer::Load(context.catalog.models(), version, context.memory_bytes());
  if (!scorer.ok()) {
    return {};  // statements that use the model report the error
  }
  const auto importance = (*scorer)->FeatureImportance();
  std::map<std::string, double> shares;
  double sum = 0;
  for (const auto& feature : importance.ok() ? *importance : std::vector<Scorer::Importance>()) {
    shares[feature.feature] += feature.gain;
    sum += feature.gain;
  }
  for (auto& [name, share] : shares) {
    share = sum > 0 ? share / sum : 0;
  }
  return shares;
}

Status DescribeModel(const plan::ModelReference& model, Context& context, ResultSink& sink) {
  ASSIGN_OR_RETURN(const catalog::ModelVersion version,
                   FindModel(model, context, catalog::ModelRight::kInspect));
  Result<plan::TrainPlan> plan = planner::ReadStoredPlan(version.plan);
  if (!plan.ok()) {
    return plan.status().At(SpanOf(model.place()));
  }
  ASSIGN_OR_RETURN(const std::vector<catalog::ModelVersion> versions,
                   context.catalog.models().Versions(model.schema(), model.name()));
  const catalog::ModelVersion* before = nullptr;
  for (const catalog::ModelVersion& other : versions) {
    if (other.version < version.version && (before == nullptr || before->version < other.version)) {
      before = &other;
    }
  }
  ResultRows rows(Schema{{{"section", DataType::kText, "text"},
                          {"name", DataType::kText, "text"},
                          {"value", DataType::kText, "text"}}});
  for (const DescriptionLine& line :
       DescribeVersion(version, *plan, SharesOfGain(version, *plan, context), before)) {
    rows.Add({line.section, line.name, line.value});
  }
  return rows.SendTo(sink);
}

Status ExecuteCreateModelType(const plan::CreateModelTypePlan& plan, Context& context,
                              ResultSink& sink) {
  RETURN_IF_ERROR(CheckNoTransaction(plan.place(), context));
  catalog::ModelVersion type;
  type.schema = plan.type().schema();
  type.name = plan.type().name();
  type.type = plan.language();
  type.statement = fmt::format("CREATE MODEL TYPE {} LANGUAGE {}", FullName(type), plan.language());
  catalog::ModelStore& types = context.catalog.model_types();
  RETURN_IF_ERROR(AtModel(types.CheckMayPut(type.schema, type.name), plan.type()));
  const auto stored = types.Put(type, plan.source(), !plan.or_replace());
  if (!stored.ok()) {
    return AtModel(stored.status(), plan.type());
  }
  if (stored->version > 1) {
    sink.Notice(fmt::format("this is version {} of {}; models that are there already keep theirs",
                            stored->version, FullName(*stored)));
  }
  sink.Done("CREATE MODEL TYPE");
  return OkStatus();
}

Status ExecuteDropModel(const plan::DropModelPlan& plan, Context& context, ResultSink& sink) {
  RETURN_IF_ERROR(CheckNoTransaction(plan.place(), context));
  const plan::ModelReference& model = plan.model();
  catalog::ModelStore& store = StoreOf(plan.type(), context);
  const std::string_view noun = plan.type() ? "model type" : "model";
  const Status dropped = store.Drop(model.schema(), model.name(), VersionOf(model));
  if (dropped.code() == Code::kNotFound && plan.if_exists()) {
    const std::string version =
        model.has_version() ? fmt::format("version {} of ", model.version()) : "";
    const std::string schema = model.schema().empty() ? "" : model.schema() + ".";
    sink.Notice(fmt::format("{}{} {}{} does not exist: nothing to drop", version, noun, schema,
                            model.name()));
  } else if (!dropped.ok()) {
    return AtModel(dropped, model);
  } else if (model.has_version()) {
    const auto live = store.Find(model.schema(), model.name(), std::nullopt);
    sink.Notice(live.ok() ? fmt::format("version {} of {} is live", live->version, FullName(*live))
                          : fmt::format("that was the last version of {} {}", noun, model.name()));
  }
  sink.Done(plan.type() ? "DROP MODEL TYPE" : "DROP MODEL");
  return OkStatus();
}

Status ExecuteAlterModel(const plan::AlterModelPlan& plan, Context& context, ResultSink& sink) {
  RETURN_IF_ERROR(CheckNoTransaction(plan.place(), context));
  const plan::ModelReference& model = plan.model();
  catalog::ModelStore& models = context.catalog.models();
  if (plan.has_rename()) {
    const plan::ModelReference& to = plan.rename();
    const Status renamed = models.Rename(model.schema(), model.name(), to.schema(), to.name());
    RETURN_IF_ERROR(AtModel(renamed, renamed.code() == Code::kAlreadyExists ? to : model));
    sink.Done("ALTER MODEL");
    return OkStatus();
  }
  RETURN_IF_ERROR(AtModel(plan.has_promote()
                              ? models.Promote(model.schema(), model.name(), plan.promote())
                              : models.Rollback(model.schema(), model.name()),
                          model));
  ASSIGN_OR_RETURN(const catalog::ModelVersion live,
                   models.Find(model.schema(), model.name(), std::nullopt));
  sink.Notice(fmt::format("version {} of {} is live now", live.version, FullName(live)));
  sink.Done("ALTER MODEL");
  return OkStatus();
}

Status ExecuteModelGrant(const plan::ModelGrantPlan& plan, Context& context, ResultSink& sink) {
  RETURN_IF_ERROR(CheckNoTransaction(plan.place(), context));
  const plan::ModelReference& model = plan.model();
  catalog::ModelStore& models = StoreOf(plan.type(), context);
  RETURN_IF_ERROR(AtModel(
      models.FindFor(catalog::ModelRight::kUsage, model.schema(), model.name(), std::nullopt)
          .status(),
      model));
  for (int i = 0; i < plan.roles_size(); ++i) {
    const std::vector<std::string> role = {plan.roles(i)};
    const catalog::ModelRights rights = {plan.usage(), plan.inspect()};
    Status changed = plan.revoke() ? models.Revoke(model.schema(), model.name(), role, rights)
                                   : models.Grant(model.schema(), model.name(), role, rights);
    if (changed.sqlstate() == "42501") {  // the model is another's
      return AtModel(changed, model);
    }
    if (!changed.ok()) {
      return std::move(changed).At(SpanOf(plan.role_places(i)));
    }
  }
  sink.Done(plan.revoke() ? "REVOKE" : "GRANT");
  return OkStatus();
}

}  // namespace sluice::executor
