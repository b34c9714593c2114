#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace sluice::models {

// Which classes are taken for which. Not thread-safe.
class ConfusionMatrix {
 public:
  // `outputs`: of the model for each row; of one, two classes are told apart, the second from
  // `threshold` on (0.5).
  ConfusionMatrix(size_t outputs, std::optional<double> threshold);

  // As Metrics::Add.
  void Add(std::span<const float> predictions, std::span<const float> labels,
           std::span<const float> weights);

  // The weight of the rows, by actual and predicted class; of two classes all four cells, else
  // those that occur.
  const std::map<std::pair<uint32_t, uint32_t>, double>& cells() const { return cells_; }

 private:
  const size_t outputs_;
  const std::optional<double> threshold_;
  std::map<std::pair<uint32_t, uint32_t>, double> cells_;
};

}  // namespace sluice::models
