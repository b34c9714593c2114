#include <algorithm>
#include <cmath>
#include <utility>

#include "models/metrics/score_curve_internal.h"

namespace sluice::models {

ScoreCurve::ScoreCurve(std::vector<Point> points)
    : points_(std::move(points)), from_(points_.size() + 1) {
  for (size_t i = points_.size(); i-- > 0;) {
    from_[i] = {from_[i + 1].positive + points_[i].positive,
                from_[i + 1].negative + points_[i].negative};
  }
}

double ScoreCurve::Auc() const {
  double negatives_below = 0;
  double positives = 0;
  double pairs = 0;
  for (const Point& point : points_) {
    pairs += point.positive * (negatives_below + point.negative / 2);
    negatives_below += point.negative;
    positives += point.positive;
  }
  return positives > 0 && negatives_below > 0 ? pairs / (positives * negatives_below) : kNotANumber;
}

double ScoreCurve::AveragePrecision() const {
  double sum = 0;
  for (size_t i = points_.size(); i-- > 0;) {
    if (points_[i].positive > 0) {
      sum += points_[i].positive * from_[i].positive / (from_[i].positive + from_[i].negative);
    }
  }
  const double positives = from_.front().positive;
  return positives > 0 ? sum / positives : kNotANumber;
}

ScoreCurve::Cut ScoreCurve::BestCut(double cost) const {
  double positives = 0;
  for (const Point& point : points_) {
    positives += point.positive;
  }
  if (!(positives > 0)) {
    return {};
  }
  double best = -std::numeric_limits<double>::infinity();
  Cut cut;
  for (size_t i = points_.size(); i-- > 0;) {
    const double hits = from_[i].positive;
    const double taken = hits + from_[i].negative;
    const double f1 = 2 * hits / (taken + positives);
    const double gain = cost > 0 ? -(cost * (positives - hits) + (taken - hits)) : f1;
    if (gain > best) {
      best = gain;
      const double low = points_[i].score;
      cut = {(low + (i == 0 ? low : points_[i - 1].score)) / 2, f1};
    }
  }
  return cut;
}

ScoreCurve::Taken ScoreCurve::From(double threshold) const {
  if (std::isnan(threshold)) {
    return {kNotANumber, kNotANumber};
  }
  const auto first =
      std::lower_bound(points_.begin(), points_.end(), threshold,
                       [](const Point& point, double score) { return point.score < score; });
  return from_[static_cast<size_t>(first - points_.begin())];
}

}  // namespace sluice::models
