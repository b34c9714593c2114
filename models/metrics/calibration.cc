#include "models/metrics/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

// Scores are grouped by their log odds, more finely than any calibration needs.
constexpr double kMaxLogOdds = 16;
constexpr size_t kBins = 2048;
constexpr int kMaxPoints = 1 << 16;
constexpr double kMinScore = 1e-7;

double LogOdds(double score) {
  const double p = std::clamp(score, kMinScore, 1 - kMinScore);
  return std::log(p / (1 - p));
}

size_t BinOf(double score) {
  const double place = (LogOdds(score) + kMaxLogOdds) / (2 * kMaxLogOdds) * kBins;
  return static_cast<size_t>(std::clamp<double>(place, 0, kBins - 1));
}

double Sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Rows with approximately the same score.
struct Point {
  double score = 0;
  double positive = 0;
  double weight = 0;
};

double Positives(const std::vector<Point>& points) {
  double sum = 0;
  for (const Point& point : points) {
    sum += point.positive;
  }
  return sum;
}

double Weight(const std::vector<Point>& points) {
  double sum = 0;
  for (const Point& point : points) {
    sum += point.weight;
  }
  return sum;
}

// Platt 1999 by Newton's method (Lin, Lin and Weng 2007), on log odds. The targets are moved away
// from 0 and 1 as if there were one more row of each class.
void FitPlatt(const std::vector<Point>& points, CalibrationCurve* curve) {
  const double positives = Positives(points);
  const double negatives = Weight(points) - positives;
  const double high = (positives + 1) / (positives + 2);
  const double low = 1 / (negatives + 2);
  double slope = 1, offset = 0;
  const auto loss = [&](double a, double b) {
    double sum = 0;
    for (const Point& point : points) {
      const double x = a * LogOdds(point.score) + b;
      const double target = point.positive * high + (point.weight - point.positive) * low;
      // -t log p - (1 - t) log(1 - p), for large x of either sign
      sum += point.weight * (std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)))) - target * x;
    }
    return sum;
  };
  constexpr int kMaxSteps = 100;
  constexpr double kRidge = 1e-12, kEnough = 1e-9;
  for (int step = 0; step < kMaxSteps; ++step) {
    double ga = 0, gb = 0, aa = kRidge, ab = 0, bb = kRidge;
    for (const Point& point : points) {
      const double x = LogOdds(point.score);
      const double p = Sigmoid(slope * x + offset);
      const double target = point.positive * high + (point.weight - point.positive) * low;
      const double miss = point.weight * p - target;
      const double curvature = point.weight * p * (1 - p);
      ga += miss * x;
      gb += miss;
      aa += curvature * x * x;
      ab += curvature * x;
      bb += curvature;
    }
    const double determinant = aa * bb - ab * ab;
    if (!(std::abs(determinant) > 0)) {
      break;
    }
    const double da = -(bb * ga - ab * gb) / determinant;
    const double db = -(aa * gb - ab * ga) / determinant;
    const double before = loss(slope, offset);
    double length = 1;
    while (length > 1e-10 && !(loss(slope + length * da, offset + length * db) < before)) {
      length /= 2;
    }
    if (length <= 1e-10) {
      break;
    }
    slope += length * da;
    offset += length * db;
    if (std::abs(da) + std::abs(db) < kEnough) {
      break;
    }
  }
  curve->set_slope(slope);
  curve->set_offset(offset);
}

// Merges neighbours that are out of order (pool adjacent violators).
void FitIsotonic(const std::vector<Point>& points, CalibrationCurve* curve) {
  struct Block {
    double first = 0, last = 0;
    double positive = 0, weight = 0;
    double rate() const { return positive / weight; }
  };
  std::vector<Block> blocks;
  for (const Point& point : points) {
    blocks.push_back({point.score, point.score, point.positive, point.weight});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].rate() >= blocks.back().rate()) {
      const Block top = blocks.back();
      blocks.pop_back();
      blocks.back().last = top.last;
      blocks.back().positive += top.positive;
      blocks.back().weight += top.weight;
    }
  }
  // This many rows justify no probability closer to 0 or 1.
  const double least = 0.5 / (Weight(points) + 1);
  const auto add = [&](double score, double rate) {
    curve->add_scores(score);
    curve->add_probabilities(std::clamp(rate, least, 1 - least));
  };
  for (const Block& block : blocks) {
    add(block.first, block.rate());
    if (block.last > block.first) {
      add(block.last, block.rate());
    }
  }
}

double ProbabilityAt(const CalibrationCurve& curve, double score) {
  const auto& scores = curve.scores();
  if (scores.empty()) {
    return Sigmoid(curve.slope() * LogOdds(score) + curve.offset());
  }
  const auto above = std::upper_bound(scores.begin(), scores.end(), score);
  const int next = static_cast<int>(above - scores.begin());
  if (next == 0) {
    return curve.probabilities(0);
  }
  if (next == scores.size()) {
    return curve.probabilities(next - 1);
  }
  const double part = (score - scores[next - 1]) / (scores[next] - scores[next - 1]);
  return curve.probabilities(next - 1) +
         part * (curve.probabilities(next) - curve.probabilities(next - 1));
}

}  // namespace

CalibrationFit::CalibrationFit(size_t outputs)
    : outputs_(outputs), bins_(outputs, std::vector<Bin>(kBins)) {}
CalibrationFit::~CalibrationFit() = default;

void CalibrationFit::Add(std::span<const double> predictions, std::span<const double> labels,
                         std::span<const float> weights) {
  for (size_t row = 0; row < labels.size(); ++row) {
    const double weight = weights.empty() ? 1 : static_cast<double>(weights[row]);
    const auto actual = static_cast<size_t>(labels[row]);
    for (size_t i = 0; i < outputs_; ++i) {
      const double score = predictions[row * outputs_ + i];
      const bool positive = outputs_ == 1 ? actual == 1 : actual == i;
      Bin& bin = bins_[i][BinOf(score)];
      bin.score += weight * score;
      bin.positive += positive ? weight : 0;
      bin.weight += weight;
    }
  }
}

void CalibrationFit::Fit(Calibration* calibration) const {
  calibration->clear_curves();
  for (const std::vector<Bin>& bins : bins_) {
    std::vector<Point> points;
    for (const Bin& bin : bins) {
      if (bin.weight > 0) {
        points.push_back({bin.score / bin.weight, bin.positive, bin.weight});
      }
    }
    CalibrationCurve* curve = calibration->add_curves();
    const double positives = Positives(points);
    if (!(positives > 0) || !(positives < Weight(points))) {
      curve->set_slope(1);
    } else if (calibration->method() == "platt") {
      FitPlatt(points, curve);
    } else {
      FitIsotonic(points, curve);
    }
  }
}

Status CheckCalibration(const Calibration& calibration, size_t outputs) {
  if (calibration.curves_size() != 0 && static_cast<size_t>(calibration.curves_size()) != outputs) {
    return InvalidArgument(fmt::format("the calibration is of {} outputs, the model has {}",
                                       calibration.curves_size(), outputs));
  }
  for (const CalibrationCurve& curve : calibration.curves()) {
    bool good = std::isfinite(curve.slope()) && std::isfinite(curve.offset()) &&
                curve.scores_size() == curve.probabilities_size() &&
                curve.scores_size() <= kMaxPoints;
    for (int i = 0; good && i < curve.scores_size(); ++i) {
      good = std::isfinite(curve.scores(i)) && curve.probabilities(i) > 0 &&
             curve.probabilities(i) < 1 &&
             (i == 0 || (curve.scores(i) > curve.scores(i - 1) &&
                         curve.probabilities(i) >= curve.probabilities(i - 1)));
    }
    if (!good) {
      return InvalidArgument("the calibration's numbers are damaged");
    }
  }
  return OkStatus();
}

void Calibrate(const Calibration& calibration, size_t outputs, std::span<double> scores) {
  if (calibration.curves_size() == 0) {
    return;
  }
  for (size_t begin = 0; begin + outputs <= scores.size(); begin += outputs) {
    double sum = 0;
    for (size_t i = 0; i < outputs; ++i) {
      double& score = scores[begin + i];
      score = ProbabilityAt(calibration.curves(static_cast<int>(i)), score);
      sum += score;
    }
    for (size_t i = 0; outputs > 1 && i < outputs; ++i) {
      scores[begin + i] /= sum;
    }
  }
}

}  // namespace sluice::models
