#pragma once

#include <cstddef>
#include <cstdint>
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

// Several models' predictions of the same rows, and the true labels.
struct BlendRows {
  Task task = Task::kBinary;
  size_t outputs = 1;
  std::vector<std::span<const double>> predictions;  // per model: rows x outputs
  std::span<const double> labels;                    // rows, or rows x outputs
  std::span<const float> weights;                    // of the rows; empty: all weigh 1
  // Of each row: its run of neighbours, which were held out together since they may be alike: the
  // rows of a run are in one half when weights are fitted on the other, and are one observation
  // when chance is judged. Not falling; empty: each row is a run of its own.
  std::span<const uint32_t> runs;
  // They come after the rows that the models were trained on, as those to be predicted will come
  // after them: what changes with time is no chance, so a blend has to win by more.
  bool forecast = false;
};
struct Blend {
  std::vector<double> weights;  // per model, summing to 1; 0: not in the blend
  // Whether it beats model `best` by more than chance on rows that its weights were not fitted on.
  // By log loss for classes, squared error for numbers.
  bool better = false;
};
// Greedy selection: starts with the single best model and adds models one by one, each as often as
// it helps.
Blend FitBlend(const BlendRows& rows, size_t best);
// The predictions of the blend: rows x outputs.
std::vector<double> BlendPredictions(const BlendRows& rows, const std::vector<double>& weights);

// The spec of a blend of these models, the heaviest first: the members share one list of inputs;
// features, label and seed come from the first. None of them may be a blend itself.
ModelSpec JoinModels(const std::vector<std::pair<const ModelSpec*, double>>& members);
// Stored weights.
std::string PackBlend(const std::vector<std::string>& members);
// `count` members. InvalidArgument: not the bytes of a blend with that many members.
Result<std::vector<std::string_view>> UnpackBlend(std::string_view bytes, size_t count);

}  // namespace sluice::models
