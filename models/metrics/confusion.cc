#include "models/metrics/confusion.h"

#include <algorithm>

namespace sluice::models {

ConfusionMatrix::ConfusionMatrix(size_t outputs, std::optional<double> threshold)
    : outputs_(outputs), threshold_(threshold) {
  if (outputs == 1) {
    cells_ = {{{0, 0}, 0}, {{0, 1}, 0}, {{1, 0}, 0}, {{1, 1}, 0}};
  }
}

void ConfusionMatrix::Add(std::span<const double> predictions, std::span<const double> labels,
                          std::span<const float> weights) {
  for (size_t row = 0; row < labels.size(); ++row) {
    const auto scores = predictions.subspan(row * outputs_, outputs_);
    uint32_t predicted = 0;
    if (outputs_ == 1) {
      const bool taken = threshold_ ? scores[0] >= *threshold_ : scores[0] > 0.5;
      predicted = taken ? 1 : 0;
    } else {
      predicted =
          static_cast<uint32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    }
    const auto actual = static_cast<uint32_t>(labels[row]);
    cells_[{actual, predicted}] += weights.empty() ? 1 : static_cast<double>(weights[row]);
  }
}

}  // namespace sluice::models
