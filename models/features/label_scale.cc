#include "models/features/label_scale.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr uint32_t kWidestLabel = 1U << 16;
// A diverged network's predictions are kept finite: logarithms beyond this are cut off, unless the
// label's own are as far, but none beyond what a double holds.
constexpr double kLargestLogarithm = 80;
constexpr double kDeviations = 10;
constexpr double kLargestOfDoubles = 700;
constexpr double kMaxCorrection = 100;

Result<LabelCurve> CurveOf(const LabelPlan& label) {
  switch (label.curve()) {
    case LabelPlan::STRAIGHT:
      return LabelCurve::kStraight;
    case LabelPlan::ROOT:
      return LabelCurve::kRoot;
    case LabelPlan::LOGARITHM:
      return LabelCurve::kLogarithm;
    default:
      return InvalidArgument(fmt::format("label '{}': unknown curve {}", label.column(),
                                         static_cast<int>(label.curve())));
  }
}

double Unbend(LabelCurve curve, double bent, double largest) {
  switch (curve) {
    case LabelCurve::kRoot:
      return std::copysign(bent * bent, bent);
    case LabelCurve::kLogarithm:
      return std::copysign(std::expm1(std::min(std::fabs(bent), largest)), bent);
    case LabelCurve::kStraight:
      break;
  }
  return bent;
}

Result<LabelScale> ScaleOfNumber(const LabelPlan& label) {
  LabelScale scale{label.mean(), label.scale()};
  ASSIGN_OR_RETURN(scale.curve, CurveOf(label));
  if (label.correction() != 0) {
    scale.correction = label.correction();
  }
  if (!(scale.correction > 0 && scale.correction <= kMaxCorrection)) {
    return InvalidArgument(fmt::format("label '{}': a correction of {}, expected above 0 up to {}",
                                       label.column(), scale.correction, kMaxCorrection));
  }
  return scale;
}

// `fits`: of a name in a list.
bool AreAll(std::string_view metrics, bool (*fits)(std::string_view)) {
  constexpr std::string_view kBetween = ", ";
  for (size_t begin = 0; (begin = metrics.find_first_not_of(kBetween, begin)) != metrics.npos;) {
    const size_t end = std::min(metrics.find_first_of(kBetween, begin), metrics.size());
    if (!fits(metrics.substr(begin, end - begin))) {
      return false;
    }
    begin = end;
  }
  return true;
}

}  // namespace

double Bend(LabelCurve curve, double number) {
  switch (curve) {
    case LabelCurve::kRoot:
      return std::copysign(std::sqrt(std::fabs(number)), number);
    case LabelCurve::kLogarithm:
      return std::copysign(std::log1p(std::fabs(number)), number);
    case LabelCurve::kStraight:
      break;
  }
  return number;
}

double LabelScale::Transformed(double number) const {
  return (Bend(curve, number) - mean) / scale;
}

double LabelScale::Restored(double learnt) const {
  const double own = std::fabs(mean) + kDeviations * std::fabs(scale);
  return Unbend(curve, learnt * scale + mean,
                std::clamp(own, kLargestLogarithm, kLargestOfDoubles));
}

bool LearnsSquares(std::string_view objective) {
  return objective == "reg:squarederror" || objective == "reg:linear";
}

bool LearnsDistances(std::string_view objective) {
  return LearnsSquares(objective) || objective == "reg:absoluteerror" ||
         objective == "reg:pseudohubererror";
}

bool ScaleWithLabel(std::string_view metrics) {
  return AreAll(metrics, [](std::string_view name) { return name == "rmse" || name == "mae"; });
}

bool MeasureDistances(std::string_view metrics) {
  return AreAll(metrics, [](std::string_view name) {
    return name == "rmse" || name == "mae" || name == "mphe";
  });
}

Result<std::vector<LabelScale>> LabelScales(const LabelPlan& label) {
  std::vector<LabelScale> scales;
  if (label.kind() == LabelPlan::NUMBER) {
    ASSIGN_OR_RETURN(const LabelScale scale, ScaleOfNumber(label));
    scales.push_back(scale);
  } else if (label.kind() == LabelPlan::VECTOR) {
    if (label.width() == 0 || label.width() > kWidestLabel) {
      return InvalidArgument(fmt::format("label '{}': {} numbers, expected 1 to {}", label.column(),
                                         label.width(), kWidestLabel));
    }
    scales.resize(label.width());
    const bool plain = label.means_size() == 0 && label.scales_size() == 0;
    const auto width = static_cast<int64_t>(label.width());
    if (!plain && (label.means_size() != width || label.scales_size() != width)) {
      return InvalidArgument(fmt::format("label '{}': {} means and {} scales for {} numbers",
                                         label.column(), label.means_size(), label.scales_size(),
                                         width));
    }
    for (int i = 0; i < label.means_size(); ++i) {
      scales[static_cast<size_t>(i)].mean = label.means(i);
      scales[static_cast<size_t>(i)].scale = label.scales(i);
    }
  }
  for (const LabelScale& one : scales) {
    if (one.scale == 0 || !std::isfinite(one.scale) || !std::isfinite(one.mean)) {
      return InvalidArgument(
          fmt::format("label '{}': mean {} and scale {} must be finite, scale not 0",
                      label.column(), one.mean, one.scale));
    }
  }
  return scales;
}

}  // namespace sluice::models
