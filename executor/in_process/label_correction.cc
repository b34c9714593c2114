#include "executor/in_process/label_correction.h"

#include <algorithm>
#include <cmath>

#include "elastic/job/further_metrics.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// With fewer rows the factor would mislead; a model outside these limits is too far off for a
// factor to help.
constexpr size_t kMinJudgedRows = 30;
constexpr double kMaxFactor = 2;

bool LeastSquares(const models::ModelSpec& model) {
  if (!model.loss().empty()) {
    return model.loss() == "squared";
  }
  for (const models::Attribute& attribute : model.attributes()) {
    if (attribute.name() == "objective") {
      return attribute.text() == "reg:squarederror" || attribute.text() == "reg:linear";
    }
  }
  return false;
}

}  // namespace

bool WantsCorrection(const plan::TrainPlan& plan) {
  const models::LabelPlan& label = plan.model().features().label();
  return label.curve() != models::LabelPlan::STRAIGHT && label.correction() == 0 &&
         plan.model().members_size() == 0 && LeastSquares(plan.model());
}

double FindCorrection(std::span<const double> predictions, std::span<const double> labels,
                      std::span<const float> weights) {
  if (predictions.size() != labels.size() || labels.size() < kMinJudgedRows) {
    return 1;
  }
  double products = 0, squares = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const double weight = weights.empty() ? 1 : static_cast<double>(weights[i]);
    products += weight * predictions[i] * labels[i];
    squares += weight * predictions[i] * predictions[i];
  }
  const double factor = products / squares;
  return std::isfinite(factor) ? std::clamp(factor, 1 / kMaxFactor, kMaxFactor) : 1;
}

void CorrectPredictions(ScoredRows rows, plan::TrainPlan* plan,
                        std::vector<std::pair<std::string, double>>* metrics) {
  if (rows.rows() == 0) {
    return;  // there are no metrics either
  }
  const double factor = FindCorrection(rows.scores, rows.labels, rows.weights);
  plan->mutable_model()->mutable_features()->mutable_label()->set_correction(factor);
  for (double& score : rows.scores) {
    score *= factor;
  }
  models::Metrics corrected(plan->model(), rows.outputs);
  corrected.Add(rows.scores, rows.labels, rows.weights);
  *metrics = corrected.Values(elastic::FurtherMetrics(*plan));
}

}  // namespace sluice::executor
