#include "server/statements/statement_use.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "catalog/catalog.h"
#include "planner/plan.pb.h"
#include "planner/stored_plan.h"
#include "server/statements/session.h"

namespace sluice::server {
namespace {

using catalog::ModelVersion;

void AddColumn(const std::string& name, StatementUse* use) {
  if (!name.empty() &&
      std::find(use->columns.begin(), use->columns.end(), name) == use->columns.end()) {
    use->columns.push_back(name);
  }
}

void AddColumns(const plan::TrainPlan& plan, StatementUse* use) {
  const models::FeaturePlan& features = plan.model().features();
  for (const models::InputColumn& input : features.inputs()) {
    AddColumn(input.name(), use);
  }
  AddColumn(features.exposure_column(), use);
}

void AddTrainingColumns(const plan::TrainPlan& plan, StatementUse* use) {
  AddColumns(plan, use);
  const models::FeaturePlan& features = plan.model().features();
  AddColumn(features.label().column(), use);
  AddColumn(features.weight_column(), use);
  AddColumn(features.group_column(), use);
  AddColumn(plan.split().column(), use);
  for (const std::string& column : plan.split().finer_columns()) {
    AddColumn(column, use);
  }
  for (const plan::LeftOut& left_out : plan.left_out()) {
    AddColumn(left_out.column(), use);
  }
}

std::optional<ModelVersion> AddModel(const std::string& schema, const std::string& name,
                                     std::optional<int64_t> version, catalog::ModelStore& models,
                                     StatementUse* use) {
  StatementUse::Model& used = use->models.emplace_back();
  used.schema = schema;
  used.name = name;
  used.version = version.value_or(0);
  Result<ModelVersion> found = models.Find(schema, name, version);
  if (!found.ok()) {
    return std::nullopt;
  }
  used.version = found->version;
  used.sha256 = found->weights_sha256;
  return *std::move(found);
}

// A model that predicts, with the columns that its features come from.
void AddPredictor(const std::string& schema, const std::string& name, int64_t version,
                  catalog::ModelStore& models, StatementUse* use) {
  const std::optional<ModelVersion> found = AddModel(schema, name, version, models, use);
  if (!found.has_value()) {
    return;
  }
  const Result<plan::TrainPlan> trained = planner::ReadStoredPlan(found->plan);
  if (trained.ok()) {
    AddColumns(*trained, use);
  }
}

std::string SnapshotIn(const std::string& lineage) {
  rapidjson::Document document;
  document.Parse(lineage.c_str(), lineage.size());
  if (document.HasParseError() || !document.IsObject()) {
    return "";
  }
  const auto found = document.FindMember("snapshot");
  return found != document.MemberEnd() && found->value.IsString() ? found->value.GetString() : "";
}

}  // namespace

void NoteBeginning(const plan::Plan& plan, Session& session, StatementUse* use) {
  catalog::ModelStore& models = session.catalog().models();
  const auto reference = [&](const plan::ModelReference& model, catalog::ModelStore& store) {
    AddModel(model.schema(), model.name(),
             model.has_version() ? std::optional(model.version()) : std::nullopt, store, use);
  };
  catalog::ModelStore& types = session.catalog().model_types();
  switch (plan.kind_case()) {
    case plan::Plan::kTrain:
      AddTrainingColumns(plan.train(), use);
      if (plan.train().has_base()) {
        AddModel(plan.train().base_schema(), plan.train().base_name(),
                 plan.train().base_version() == 0 ? std::nullopt
                                                  : std::optional(plan.train().base_version()),
                 models, use);
      }
      break;
    case plan::Plan::kPredict:
      for (const catalog::ColumnDescription& column : plan.predict().pass_through()) {
        AddColumn(column.name(), use);
      }
      AddPredictor(plan.predict().model_schema(), plan.predict().model_name(),
                   plan.predict().model_version(), models, use);
      break;
    case plan::Plan::kEvaluate:
      AddColumn(plan.evaluate().label(), use);
      AddPredictor(plan.evaluate().model_schema(), plan.evaluate().model_name(),
                   plan.evaluate().model_version(), models, use);
      break;
    case plan::Plan::kReport:
      AddColumn(plan.report().label(), use);
      AddPredictor(plan.report().model_schema(), plan.report().model_name(),
                   plan.report().model_version(), models, use);
      break;
    case plan::Plan::kShow:
      use->job = plan.show().job();
      if (plan.show().has_model()) {
        reference(plan.show().model(), models);
      }
      break;
    case plan::Plan::kDescribe:
      if (plan.describe().has_model()) {
        reference(plan.describe().model(), models);
      }
      break;
    case plan::Plan::kDropModel:
      reference(plan.drop_model().model(), plan.drop_model().type() ? types : models);
      break;
    case plan::Plan::kAlterModel:
      reference(plan.alter_model().model(), models);
      break;
    case plan::Plan::kModelGrant: {
      const plan::ModelGrantPlan& grant = plan.model_grant();
      reference(grant.model(), grant.type() ? types : models);
      (grant.revoke() ? use->revoked_from : use->granted_to)
          .assign(grant.roles().begin(), grant.roles().end());
      break;
    }
    case plan::Plan::kCreateModelType:
      break;  // known at its end
    case plan::Plan::kExportModel:
      reference(plan.export_model().model(), models);
      break;
    case plan::Plan::kImportModel:
      break;
    case plan::Plan::kJob:
      use->job = plan.job().job();
      break;
    case plan::Plan::KIND_NOT_SET:
      break;
  }
}

void NoteEnd(const plan::Plan& plan, bool succeeded, Session& session, StatementUse* use) {
  if (plan.has_create_model_type() || plan.has_import_model()) {
    const plan::ModelReference& made =
        plan.has_import_model() ? plan.import_model().into() : plan.create_model_type().type();
    if (succeeded && !made.name().empty()) {
      AddModel(
          made.schema(), made.name(), std::nullopt,
          plan.has_import_model() ? session.catalog().models() : session.catalog().model_types(),
          use);
    }
    return;
  }
  if (use->job == 0 || plan.has_show() || plan.has_job()) {
    return;
  }
  const Result<catalog::Job> job = session.catalog().jobs().Find(use->job);
  if (job.ok()) {
    use->rows_read = job->rows_read;
  }
  if (!plan.has_train() || !succeeded) {
    return;
  }
  // Another training may have made a later version meanwhile.
  const Result<std::vector<ModelVersion>> versions =
      session.catalog().models().Versions(plan.train().into_schema(), plan.train().into_name());
  for (const ModelVersion& version : versions.ok() ? *versions : std::vector<ModelVersion>()) {
    if (version.job == use->job) {
      use->models.insert(use->models.begin(),
                         {version.schema, version.name, version.version, version.weights_sha256});
      use->snapshot = SnapshotIn(version.lineage);
    }
  }
}

}  // namespace sluice::server
