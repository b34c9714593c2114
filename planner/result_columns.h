#pragma once

#include <string>
#include <vector>

#include "base/row_batch.h"
#include "models/metrics/metric.h"

namespace sluice::models {
class ModelSpec;
}

namespace sluice::plan {
class EvaluatePlan;
class PredictPlan;
class TrainPlan;
}  // namespace sluice::plan

// The columns of answers of statements that use a model: the planner compares existing tables with
// them, the executor writes them.
namespace sluice::planner {

// The model, its version and job, its loss, and the requested metrics under the statement's names,
// or else the task's. No metrics without validation rows.
Schema TrainResult(const plan::TrainPlan& plan);

// The columns that a PREDICT adds to each row: the prediction (or each of several quantiles), and
// its extra outputs.
std::vector<ColumnInfo> PredictedColumns(const plan::PredictPlan& plan);
// How many of the columns that are passed through stand before those: all but the truth.
size_t ColumnsBeforePrediction(const plan::PredictPlan& plan);
// The columns that are passed through, those that are added, and at the end the truth, if it is
// selected.
Schema PredictResult(const plan::PredictPlan& plan);

// Canonical names of the metrics in an EVALUATE's answer, and their column names: loss first, as in
// SQLFlow; then those requested, or all of the model.
struct NamedMetric {
  std::string column;
  std::string metric;
};
std::vector<NamedMetric> EvaluatedMetrics(const plan::EvaluatePlan& plan,
                                          const models::ModelSpec& model);
// A row of those metrics, or the columns for plan.report.
Schema EvaluateResult(const plan::EvaluatePlan& plan, const models::ModelSpec& model);

// A column, and how its cells compare with those of the training.
Schema DriftResult();

// For a statement that writes a table of predictions.
Schema PredictTableResult();

// For TO EXPLAIN, with the names of SQLFlow's XGBoostExplainer.
Schema ReportResult();

}  // namespace sluice::planner
