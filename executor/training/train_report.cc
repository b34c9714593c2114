#include "executor/training/train_report.h"

#include <cmath>
#include <utility>
#include <vector>

#include "executor/jobs/job_answer.h"
#include "executor/jobs/job_record.h"
#include "executor/result_rows.h"
#include "models/metrics/decision_table.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

constexpr const char* kTag = "TRAIN";
// Shown in a column of its own.
constexpr const char* kTrainLoss = "train_loss";

// The metric of this name in the statement; NULL if there were no rows to evaluate, or too many
// classes for it (a curve each: auc).
Value MetricOf(const catalog::ModelVersion& version, const std::string& name) {
  const std::string canonical = models::Metrics::CanonicalName(name);
  for (const auto& [known, value] : version.metrics) {
    if ((known == name || known == canonical) && known != kTrainLoss && !std::isnan(value)) {
      return value;
    }
  }
  return std::monostate{};
}

}  // namespace

double SecondsUntil(int64_t micros, JobRecord& job) {
  constexpr double kMicros = 1e6;
  return static_cast<double>(micros - job.job().started_micros) / kMicros;
}

std::string AnswerOf(const plan::TrainPlan& plan, const catalog::ModelVersion& version,
                     const elastic::TrainOutcome& outcome, double seconds) {
  Schema schema = planner::TrainResult(plan);
  std::vector<Value> row = {
      version.schema.empty() ? version.name : version.schema + "." + version.name,
      version.version,
      version.job,
      version.type,
      outcome.rows_per_epoch,
      static_cast<int64_t>(outcome.epochs),
      std::round(seconds * 1000) / 1000,
      outcome.loss};
  for (size_t i = row.size(); i < schema.columns.size(); ++i) {
    row.push_back(MetricOf(version, schema.columns[i].name));
  }
  ResultRows rows(std::move(schema));
  rows.Add(std::move(row));
  return AnswerBytes(rows, kTag);
}

void CountRows(const elastic::TrainOutcome& outcome, JobRecord& job) {
  job.job().rows_read = outcome.rows_read;
  job.job().rows_trained = outcome.rows_trained;
  job.job().rows_retried = outcome.rows_retried;
  job.job().rows_skipped = outcome.rows_skipped;
}

void AddMetrics(const catalog::ModelVersion& version, const elastic::TrainOutcome& outcome,
                JobRecord& job) {
  for (const auto& [name, value] : version.metrics) {
    if (name != kTrainLoss && !models::IsDecisionMetric(name)) {
      job.Metric(outcome.epochs, name, value);
    }
  }
}

}  // namespace sluice::executor
