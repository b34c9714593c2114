#include "planner/result_columns.h"

#include <iterator>

#include "catalog/column_description.h"
#include "models/model.pb.h"
#include "planner/plan.pb.h"

namespace sluice::planner {

Schema TrainResult(const plan::TrainPlan& plan) {
  Schema schema{{{"model", DataType::kText, ""},
                 {"version", DataType::kInt64, ""},
                 {"job", DataType::kInt64, ""},
                 {"type", DataType::kText, ""},
                 {"rows", DataType::kInt64, ""},
                 {"epochs", DataType::kInt64, ""},
                 {"seconds", DataType::kDouble, ""},
                 {"loss", DataType::kDouble, ""}}};
  if (plan.split().kind() == plan::Split::NONE && plan.folds() == 0 && !plan.has_contest()) {
    return schema;
  }
  std::vector<std::string> metrics(plan.metrics().begin(), plan.metrics().end());
  if (metrics.empty()) {
    metrics = models::Metrics::StandardNames(plan.model());
  }
  for (std::string& metric : metrics) {
    schema.columns.push_back({std::move(metric), DataType::kDouble, ""});
  }
  return schema;
}

Schema PredictTableResult() {
  return Schema{{{"table", DataType::kText, ""},
                 {"model", DataType::kText, ""},
                 {"version", DataType::kInt64, ""},
                 {"rows", DataType::kInt64, ""},
                 {"seconds", DataType::kDouble, ""}}};
}

std::vector<ColumnInfo> PredictedColumns(const plan::PredictPlan& plan) {
  std::vector<ColumnInfo> columns;
  const auto type = static_cast<DataType>(plan.prediction_type());
  for (const std::string& quantile : plan.quantile_columns()) {
    columns.push_back({quantile, type, ""});
  }
  if (columns.empty()) {
    columns.push_back({plan.column(), type, ""});
  }
  for (const plan::PredictPlan::ExtraOutput& output : plan.extra_outputs()) {
    columns.push_back({output.column(), DataType::kDouble, ""});
  }
  return columns;
}

size_t ColumnsBeforePrediction(const plan::PredictPlan& plan) {
  return static_cast<size_t>(plan.pass_through_size()) - (plan.actual().empty() ? 0 : 1);
}

Schema PredictResult(const plan::PredictPlan& plan) {
  Schema schema;
  for (const catalog::ColumnDescription& column : plan.pass_through()) {
    schema.columns.push_back(catalog::ColumnOf(column));
  }
  std::vector<ColumnInfo> predicted = PredictedColumns(plan);
  schema.columns.insert(
      schema.columns.begin() + static_cast<ptrdiff_t>(ColumnsBeforePrediction(plan)),
      std::make_move_iterator(predicted.begin()), std::make_move_iterator(predicted.end()));
  return schema;
}

std::vector<NamedMetric> EvaluatedMetrics(const plan::EvaluatePlan& plan,
                                          const models::ModelSpec& model) {
  std::vector<NamedMetric> metrics;
  const models::Task task = models::TaskOf(model);
  if (task != models::Task::kRanking) {
    metrics.push_back({"loss", task == models::Task::kRegression  ? "mse"
                               : task == models::Task::kQuantiles ? "pinball_loss"
                                                                  : "log_loss"});
  }
  for (const std::string& name : plan.metrics()) {
    metrics.push_back({name, models::Metrics::CanonicalName(name)});
  }
  if (plan.metrics().empty()) {
    for (const std::string& name : models::Metrics::StandardNames(model)) {
      metrics.push_back({name, name});
    }
  }
  return metrics;
}

Schema DriftResult() {
  Schema schema{{{"column_name", DataType::kText, ""}}};
  for (const char* name : {"null_share", "trained_null_share", "unknown_share", "outside_share",
                           "mean", "trained_mean", "stability_index"}) {
    schema.columns.push_back({name, DataType::kDouble, ""});
  }
  return schema;
}

Schema EvaluateResult(const plan::EvaluatePlan& plan, const models::ModelSpec& model) {
  if (plan.report() == plan::EvaluatePlan::DRIFT) {
    return DriftResult();
  }
  if (plan.report() == plan::EvaluatePlan::CONFUSION) {
    return Schema{{{"actual", DataType::kText, ""},
                   {"predicted", DataType::kText, ""},
                   {"rows", DataType::kDouble, ""}}};
  }
  Schema schema;
  if (plan.report() == plan::EvaluatePlan::THRESHOLDS) {
    for (const char* name :
         {"threshold", "predicted_positive", "precision", "recall", "f1", "true_positives",
          "false_positives", "true_negatives", "false_negatives"}) {
      schema.columns.push_back({name, DataType::kDouble, ""});
    }
    return schema;
  }
  for (const NamedMetric& metrics : EvaluatedMetrics(plan, model)) {
    schema.columns.push_back({metrics.column, DataType::kDouble, ""});
  }
  return schema;
}

Schema ReportResult() {
  return Schema{{{"feature", DataType::kText, ""},
                 {"fscore", DataType::kDouble, ""},
                 {"gain", DataType::kDouble, ""}}};
}

}  // namespace sluice::planner
