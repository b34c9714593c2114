#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "models/features/feature_transform.h"
#include "models/graph/graph_run_internal.h"

namespace sluice::models {
class ModelSpec;
}

// Turns a batch of rows into the inputs of a graph.
namespace sluice::models::graph {

class GraphInputs {
 public:
  // Resolves the features by name. `run` outlives it.
  static Result<GraphInputs> Make(const ModelSpec& spec, const FeatureTransform& transform,
                                  GraphRun* run);

  // After GraphRun::Plan: the batch must outlive the run's Forward and Backward.
  void Feed(const FeatureBatch& batch);
  // An IDS or BAG by its name; nullopt: there is none.
  std::optional<size_t> Find(const std::string& name) const;
  const SlotColumn& SlotOf(size_t input) const;
  // The ids by which a table is read, in the order of the input.
  const std::vector<uint32_t>& IdsOf(size_t input, const FeatureBatch& batch);
  // For a BAG: its ends and weights, with positions in a table instead of ids.
  RowUse UseOf(size_t input, const FeatureBatch& batch, std::span<const uint32_t> positions) const;

 private:
  // Adjacent columns of FeatureBatch::dense.
  struct Run {
    size_t from = 0;
    size_t to = 0;
    size_t width = 0;
  };
  struct Input {
    const GraphInput* graph = nullptr;
    std::vector<Run> runs;         // NUMBERS
    size_t slot = 0;               // IDS, MASK, BAG
    std::vector<uint32_t> padded;  // IDS: for one batch
    RowUse bag;
  };
  GraphInputs(const FeatureTransform& transform, GraphRun* run)
      : transform_(&transform), run_(run) {}
  Status AddNumbers(const ModelSpec& spec, Input* input);
  Status AddSlot(const ModelSpec& spec, Input* input);
  void NameFeatures(const ModelSpec& spec);
  static void Pad(const IdSlot& slot, size_t rows, Input* input);

  const FeatureTransform* transform_;
  GraphRun* run_;
  std::vector<Input> inputs_;
  // By name: features among the transform's columns and slots, and the IDS and BAGs.
  std::unordered_map<std::string, size_t> columns_, slots_, ids_;
};

}  // namespace sluice::models::graph
