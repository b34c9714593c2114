#include "executor/training/commit_model.h"

#include <fmt/core.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <string>
#include <utility>

#include "base/profile.h"
#include "catalog/dataset.pb.h"
#include "executor/jobs/job_record.h"
#include "executor/scoring/decision_threshold.h"
#include "executor/training/store_model.h"
#include "executor/training/train_report.h"
#include "models/features/feature_transform.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

std::string LineageJson(const plan::TrainPlan& plan, const catalog::DatasetSpec& dataset,
                        const elastic::TrainOutcome& outcome) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  writer.Key("snapshot");
  writer.String(dataset.fingerprint().c_str());
  writer.Key("seed");
  writer.Uint64(plan.seed());
  writer.Key("epochs");
  writer.Uint(outcome.epochs);
  writer.Key("rows_per_epoch");
  writer.Int64(outcome.rows_per_epoch);
  writer.Key("validation_rows");
  writer.Int64(outcome.validation_rows);
  writer.Key("rows_skipped");
  writer.Int64(outcome.rows_skipped);
  if (plan.has_base()) {
    writer.Key("continued_from");
    writer.String(plan.base_name().c_str());
  }
  writer.EndObject();
  return buffer.GetString();
}

int64_t ValidationRows(const TrainedModel& model, const elastic::TrainOutcome& outcome) {
  return model.held_out == nullptr ? outcome.validation_rows
                                   : static_cast<int64_t>(model.held_out->rows());
}

// What is hardly ever so unless a feature is known only after the label; empty: nothing.
std::string TooGood(const catalog::ModelVersion& version, int64_t validation_rows) {
  constexpr int64_t kFewRows = 100;
  constexpr std::pair<const char*, double> kBounds[] = {{"auc", 0.9999}, {"r2", 0.999}};
  for (const auto& [metric, bound] : kBounds) {
    for (const auto& [name, value] : version.metrics) {
      if (name == metric && value >= bound && validation_rows >= kFewRows) {
        return fmt::format(
            "{} {:.4f} on {} validation rows is rarely true: is each feature known "
            "before the label is? DESCRIBE MODEL shows what they count",
            metric, value, validation_rows);
      }
    }
  }
  return "";
}

}  // namespace

Status CommitModel(const TrainedModel& model, const plan::TrainPlan& statement,
                   catalog::ModelStore& models, JobRecord& job,
                   const elastic::TrainOutcome& outcome, const std::stop_token& stop) {
  plan::TrainPlan plan = model.plan;
  catalog::ModelVersion version;
  version.metrics = outcome.metrics;
  PhaseClock clock(Phase::kFinishing, &job.profile());
  RETURN_IF_ERROR(FinishModel(model, stop, &plan, &version.metrics));
  if (!plan.threshold().empty() && !DecisionThreshold(plan, version)) {
    const std::string& sought = plan.model().features().label().classes(1);
    plan.add_warnings(fmt::format("no '{}' among the validation rows: 0.5 decides", sought));
    job.Announce("no_threshold", "WARNING: " + *plan.warnings().rbegin());
  }
  if (const std::string why = TooGood(version, ValidationRows(model, outcome));
      !why.empty() && plan.warnings().empty()) {
    plan.add_warnings(why);
    job.Announce("too_good", "WARNING: " + why);
  }
  clock.Enter(Phase::kStoring);
  version.schema = plan.into_schema();
  version.name = plan.into_name();
  version.type = plan.model().type();
  version.statement = plan.statement();
  plan.mutable_model()->mutable_features()->mutable_label()->clear_classes_of_sample();
  version.plan = plan.SerializeAsString();
  version.metrics.emplace_back("train_loss", outcome.loss);
  version.job = job.id();
  version.rows = outcome.rows_trained;
  version.lineage = LineageJson(plan, model.dataset, outcome);
  StorePatience patience;
  patience.away_seconds = plan.database_patience_seconds();
  patience.stop = stop;
  patience.tell = [&job](const std::string& why) { job.Announce("commit_waits", why); };
  CountRows(outcome, job);
  AddMetrics(version, outcome, job);
  job.Flush();  // whoever finds that the job has ended finds these, too
  std::string answer;
  const catalog::EndOfJob end = [&](const catalog::ModelVersion& stored) {
    answer = AnswerOf(statement, stored, outcome, SecondsUntil(stored.created_micros, job));
    return job.Success(answer);
  };
  RETURN_IF_ERROR(StoreModel(models, version, model.weights, plan.must_be_new(), end, patience));
  job.HasSucceeded(std::move(answer));
  return OkStatus();
}

}  // namespace sluice::executor
