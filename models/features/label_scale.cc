#include "models/features/label_scale.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdint>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr uint32_t kWidestLabel = 1U << 16;

}  // namespace

Result<std::vector<LabelScale>> LabelScales(const LabelPlan& label) {
  std::vector<LabelScale> scales;
  if (label.kind() == LabelPlan::NUMBER) {
    scales.push_back({label.mean(), label.scale()});
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
      scales[static_cast<size_t>(i)] = {label.means(i), label.scales(i)};
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
  for (size_t i = 0; i < labels->size(); ++i) {
    const LabelScale& one = (*scales)[i % scales->size()];
    (*labels)[i] = static_cast<float>(static_cast<double>((*labels)[i]) * one.scale + one.mean);
  }
}

}  // namespace sluice::models
