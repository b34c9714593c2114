#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace sluice::models {

// Counts actual against predicted classes. Not thread-safe.
class ConfusionMatrix {
 public:
  // `outputs`: number per row; with one there are two classes, the second from `threshold` on
  // (0.5).
  ConfusionMatrix(size_t outputs, std::optional<double> threshold);

  // As for Metrics::Add.
  void Add(std::span<const double> predictions, std::span<const double> labels,
           std::span<const float> weights);

  // The weight of the rows by actual and predicted class; all four cells for two classes, else the
  // cells that occur.
  const std::map<std::pair<uint32_t, uint32_t>, double>& cells() const { return cells_; }

 private:
  const size_t outputs_;
  const std::optional<double> threshold_;
  std::map<std::pair<uint32_t, uint32_t>, double> cells_;
};

}  // namespace sluice::models
