#include "models/features/label_scale.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr uint32_t kWidestLabel = 1U << 16;
// Beyond this a float would be infinite; keeps the predictions of a diverged network finite.
constexpr double kLargestLogarithm = 80;
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

double Unbend(LabelCurve curve, double bent) {
  switch (curve) {
    case LabelCurve::kRoot:
      return std::copysign(bent * bent, bent);
    case LabelCurve::kLogarithm:
      return std::copysign(std::expm1(std::min(std::fabs(bent), kLargestLogarithm)), bent);
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
  return Unbend(curve, learnt * scale + mean);
}

bool LearnsSquares(std::string_view objective) {
  return objective == "reg:squarederror" || objective == "reg:linear";
}

bool ScaleWithLabel(std::string_view metrics) {
  constexpr std::string_view kBetween = ", ";
  for (size_t begin = 0; (begin = metrics.find_first_not_of(kBetween, begin)) != metrics.npos;) {
    const size_t end = std::min(metrics.find_first_of(kBetween, begin), metrics.size());
    const std::string_view name = metrics.substr(begin, end - begin);
    if (name != "rmse" && name != "mae") {
      return false;
    }
    begin = end;
  }
  return true;
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

void RestoreLabelScale(const LabelPlan& label, std::vector<float>* labels) {
  const Result<std::vector<LabelScale>> scales = LabelScales(label);
  if (!scales.ok() || scales->empty()) {
    return;
  }
  // Zero is not exact on the scale of the batch, and relative errors need it to be.
  constexpr double kRounded = 4 * std::numeric_limits<float>::epsilon();
  for (size_t i = 0; i < labels->size(); ++i) {
    const LabelScale& one = (*scales)[i % scales->size()];
    const double learnt = static_cast<double>((*labels)[i]);
    const bool zero = std::fabs(learnt * one.scale + one.mean) <= kRounded * std::fabs(one.mean);
    (*labels)[i] = zero ? 0.0F : static_cast<float>(one.Restored(learnt));
  }
}

}  // namespace sluice::models
