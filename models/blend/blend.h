#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/metrics/metric.h"

namespace sluice::models {

class ModelSpec;

// The type of a blend's ModelSpec; no type of the registry.
inline constexpr char kBlendType[] = "blend";

// What several models say of the same rows, and what is true of them.
struct BlendRows {
  Task task = Task::kBinary;
  size_t outputs = 1;
  std::vector<std::span<const float>> predictions;  // per model: rows x outputs
  std::span<const float> labels;                    // rows, or rows x outputs
  std::span<const float> weights;                   // of the rows; empty: all weigh 1
};
struct Blend {
  std::vector<double> weights;  // per model, adding up to 1; 0: not in it
  // Whether it is better than model `best` on rows that its weights were not found on, by more than
  // chance. By log loss for classes, squared error for numbers.
  bool better = false;
};
// Models are added one by one, each as often as it helps, to the one that is best by itself.
Blend FitBlend(const BlendRows& rows, size_t best);
// The predictions of the blend: rows x outputs.
std::vector<float> BlendPredictions(const BlendRows& rows, const std::vector<double>& weights);

// The spec of a blend of these models, the heaviest first: the members read one list of inputs, and
// features, label and seed are those of the first. None of them is a blend itself.
ModelSpec JoinModels(const std::vector<std::pair<const ModelSpec*, double>>& members);
// Stored weights.
std::string PackBlend(const std::vector<std::string>& members);
// `count` members. InvalidArgument: the bytes are not those of a blend of so many.
Result<std::vector<std::string_view>> UnpackBlend(std::string_view bytes, size_t count);

}  // namespace sluice::models
