#include "executor/training/train_report.h"

#include <cmath>

#include "executor/jobs/job_record.h"
#include "executor/result_rows.h"
#include "models/metrics/decision_table.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

// The metric of this name in the statement; NULL if there were no rows to evaluate, or too many
// classes for it (a curve each: auc).
Value MetricOf(const TrainReport& report, const std::string& name) {
  const std::string canonical = models::Metrics::CanonicalName(name);
  for (const auto& [known, value] : report.metrics) {
    if ((known == name || known == canonical) && !std::isnan(value)) {
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

TrainReport ReportOn(catalog::ModelVersion version, const elastic::TrainOutcome& outcome,
                     double seconds, JobRecord& job) {
  job.job().rows_read = outcome.rows_read;
  job.job().rows_trained = outcome.rows_trained;
  job.job().rows_retried = outcome.rows_retried;
  job.job().rows_skipped = outcome.rows_skipped;
  // As stored, that is after calibration; the loss is shown next to them.
  std::vector<std::pair<std::string, double>> metrics = version.metrics;
  std::erase_if(metrics, [](const auto& one) { return one.first == "train_loss"; });
  for (const auto& [name, value] : metrics) {
    if (!models::IsDecisionMetric(name)) {
      job.Metric(outcome.epochs, name, value);
    }
  }
  TrainReport report;
  report.version = std::move(version);
  report.loss = outcome.loss;
  report.rows = outcome.rows_per_epoch;
  report.epochs = outcome.epochs;
  report.metrics = std::move(metrics);
  report.seconds = seconds;
  return report;
}

TrainReport ReportOnStored(catalog::ModelVersion version, JobRecord& job) {
  elastic::TrainOutcome outcome;
  outcome.rows_per_epoch = version.rows_per_epoch;
  outcome.rows_trained = version.rows;
  if (version.rows_per_epoch > 0) {
    outcome.epochs = static_cast<uint32_t>(version.rows / version.rows_per_epoch);
  }
  for (const auto& [name, value] : version.metrics) {
    outcome.loss = name == "train_loss" ? value : outcome.loss;
  }
  const double seconds = SecondsUntil(version.created_micros, job);
  return ReportOn(std::move(version), outcome, seconds, job);
}

ResultRows AnswerOf(const plan::TrainPlan& plan, const TrainReport& report) {
  Schema schema = planner::TrainResult(plan);
  const std::string& model_schema = report.version.schema;
  std::vector<Value> row = {
      model_schema.empty() ? report.version.name : model_schema + "." + report.version.name,
      report.version.version,
      report.version.job,
      report.version.type,
      report.rows,
      static_cast<int64_t>(report.epochs),
      std::round(report.seconds * 1000) / 1000,
      report.loss};
  for (size_t i = row.size(); i < schema.columns.size(); ++i) {
    row.push_back(MetricOf(report, schema.columns[i].name));
  }
  ResultRows rows(std::move(schema));
  rows.Add(std::move(row));
  return rows;
}

}  // namespace sluice::executor
