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

// What the answers of statements that use a model look like: the planner holds an existing table
// against it, the executor writes it.
namespace sluice::planner {

// The model, its version and job, its loss, and the metrics that the statement asks for under its
// own names: where it says nothing, those of the task. None without validation rows.
Schema TrainResult(const plan::TrainPlan& plan);

// What a PREDICT adds to each row: the prediction, and its extra outputs.
std::vector<ColumnInfo> PredictedColumns(const plan::PredictPlan& plan);
// The columns that are passed through, then those.
Schema PredictResult(const plan::PredictPlan& plan);

// Canonical names of the metrics that an EVALUATE tells, and what it calls them: loss first, as
// SQLFlow does; then those asked for, or all of the task.
struct ToldMetric {
  std::string column;
  std::string metric;
};
std::vector<ToldMetric> ToldMetrics(const plan::EvaluatePlan& plan, models::Task task);
// A row of those metrics, or what plan.report asks for.
Schema EvaluateResult(const plan::EvaluatePlan& plan, models::Task task);

// Of a statement that writes a table of predictions.
Schema PredictTableResult();

// Of TO EXPLAIN, named as SQLFlow's XGBoostExplainer names them.
Schema ReportResult();

}  // namespace sluice::planner
