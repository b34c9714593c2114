#include "executor/in_process/label_correction.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "elastic/job/further_metrics.h"
#include "models/features/label_scale.h"
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

template <typename Weight>
double LeastSquaresFactor(std::span<const double> predictions, std::span<const double> labels,
                          const Weight& weight) {
  double products = 0, squares = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    products += weight(i) * predictions[i] * labels[i];
    squares += weight(i) * predictions[i] * predictions[i];
  }
  return products / squares;
}

// The same for labels that are as far from the predictions as neighbours are from each other.
template <typename Weight>
double SpreadFactor(const models::LabelScale& scale, std::span<const double> predictions,
                    std::span<const double> labels, const Weight& weight) {
  const Line level = LineThrough(scale, predictions, labels, weight);
  // How far labels are from the line; what is on a higher level spreads more, too.
  const auto off = [&](size_t i) {
    const double bent = scale.Transformed(predictions[i]);
    return (scale.Transformed(labels[i]) - level.at(bent)) / std::max(1.0, level.slope);
  };
  const auto before = [](size_t i) { return i == 0 ? 1 : i - 1; };
  std::vector<double> spread(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) {
    const double apart = (off(i) - off(before(i))) / std::numbers::sqrt2;
    spread[i] = scale.Restored(scale.Transformed(predictions[i]) + apart);
  }
  return LeastSquaresFactor(predictions, spread,
                            [&](size_t i) { return std::sqrt(weight(i) * weight(before(i))); });
}

bool AreDrawnFromAll(const plan::Split& split) {
  return split.kind() == plan::Split::RANDOM || split.kind() == plan::Split::HASH ||
         split.kind() == plan::Split::NONE;  // then there are folds
}

models::LabelScale CurveOf(const plan::TrainPlan& plan) {
  return {.curve = plan.model().features().label().curve() == models::LabelPlan::ROOT
                       ? models::LabelCurve::kRoot
                       : models::LabelCurve::kLogarithm};
}

}  // namespace

bool WantsCorrection(const plan::TrainPlan& plan) {
  const models::LabelPlan& label = plan.model().features().label();
  return label.curve() != models::LabelPlan::STRAIGHT && label.correction() == 0 &&
         plan.model().members_size() == 0 && LeastSquares(plan.model());
}

double FindCorrection(const plan::TrainPlan& plan, std::span<const double> predictions,
                      std::span<const double> labels, std::span<const float> weights) {
  if (predictions.size() != labels.size() || labels.size() < kMinJudgedRows) {
    return 1;
  }
  const auto weight = [&](size_t i) {
    return weights.empty() ? 1.0 : static_cast<double>(weights[i]);
  };
  const double factor = AreDrawnFromAll(plan.split())
                            ? LeastSquaresFactor(predictions, labels, weight)
                            : SpreadFactor(CurveOf(plan), predictions, labels, weight);
  return std::isfinite(factor) ? std::clamp(factor, 1 / kMaxFactor, kMaxFactor) : 1;
}

void CorrectPredictions(ScoredRows rows, plan::TrainPlan* plan,
                        std::vector<std::pair<std::string, double>>* metrics) {
  if (rows.rows() == 0) {
    return;  // there are no metrics either
  }
  const double factor = FindCorrection(*plan, rows.scores, rows.labels, rows.weights);
  plan->mutable_model()->mutable_features()->mutable_label()->set_correction(factor);
  for (double& score : rows.scores) {
    score *= factor;
  }
  models::Metrics corrected(plan->model(), rows.outputs);
  corrected.Add(rows.scores, rows.labels, rows.weights);
  *metrics = corrected.Values(elastic::FurtherMetrics(*plan));
}

}  // namespace sluice::executor
