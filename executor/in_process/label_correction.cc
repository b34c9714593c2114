#include "executor/in_process/label_correction.h"

#include <algorithm>
#include <cmath>
#include <numbers>

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

// Where labels are on their curve, for a prediction on it.
struct Line {
  double from = 0, to = 0;  // the means of predictions and labels
  double slope = 1;
  double at(double prediction) const { return to + slope * (prediction - from); }
};

// By least squares.
template <typename Weight>
Line LineThrough(const models::LabelScale& scale, std::span<const double> predictions,
                 std::span<const double> labels, const Weight& weight) {
  Line line;
  double sum = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    sum += weight(i);
    line.from += weight(i) * scale.Transformed(predictions[i]);
    line.to += weight(i) * scale.Transformed(labels[i]);
  }
  line.from /= sum;
  line.to /= sum;
  double products = 0, squares = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const double away = scale.Transformed(predictions[i]) - line.from;
    products += weight(i) * away * (scale.Transformed(labels[i]) - line.to);
    squares += weight(i) * away * away;
  }
  const double slope = products / squares;
  line.slope = std::isfinite(slope) && slope > 0 ? slope : 1;
  return line;
}

}  // namespace

bool WantsCorrection(const plan::TrainPlan& plan) {
  const models::LabelPlan& label = plan.model().features().label();
  return label.curve() != models::LabelPlan::STRAIGHT && label.correction() == 0 &&
         plan.model().members_size() == 0 && LeastSquares(plan.model());
}

double FindCorrection(const models::LabelPlan& label, std::span<const double> predictions,
                      std::span<const double> labels, std::span<const float> weights) {
  if (predictions.size() != labels.size() || labels.size() < kMinJudgedRows) {
    return 1;
  }
  const models::LabelScale scale{.curve = label.curve() == models::LabelPlan::ROOT
                                              ? models::LabelCurve::kRoot
                                              : models::LabelCurve::kLogarithm};
  const auto weight = [&](size_t i) {
    return weights.empty() ? 1.0 : static_cast<double>(weights[i]);
  };
  const Line level = LineThrough(scale, predictions, labels, weight);
  // How far labels are from the line; what is on a higher level spreads more, too.
  const auto off = [&](size_t i) {
    const double bent = scale.Transformed(predictions[i]);
    return (scale.Transformed(labels[i]) - level.at(bent)) / std::max(1.0, level.slope);
  };
  double products = 0, squares = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t before = i == 0 ? 1 : i - 1;
    const double both = std::sqrt(weight(i) * weight(before));
    const double spread = (off(i) - off(before)) / std::numbers::sqrt2;
    const double mean = scale.Restored(scale.Transformed(predictions[i]) + spread);
    products += both * predictions[i] * mean;
    squares += both * predictions[i] * predictions[i];
  }
  const double factor = products / squares;
  return std::isfinite(factor) ? std::clamp(factor, 1 / kMaxFactor, kMaxFactor) : 1;
}

void CorrectPredictions(ScoredRows rows, plan::TrainPlan* plan,
                        std::vector<std::pair<std::string, double>>* metrics) {
  if (rows.rows() == 0) {
    return;  // there are no metrics either
  }
  const double factor =
      FindCorrection(plan->model().features().label(), rows.scores, rows.labels, rows.weights);
  plan->mutable_model()->mutable_features()->mutable_label()->set_correction(factor);
  for (double& score : rows.scores) {
    score *= factor;
  }
  models::Metrics corrected(plan->model(), rows.outputs);
  corrected.Add(rows.scores, rows.labels, rows.weights);
  *metrics = corrected.Values(elastic::FurtherMetrics(*plan));
}

}  // namespace sluice::executor
