#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/trees/histogram/cut_points.h"
#include "models/trees/histogram/tree_pass.pb.h"

namespace sluice::models::histogram {

// What a learner has remembered (TrainingMemory), for another one that goes on over the same rows.
struct ForestMemory {
  // What the forest must be like.
  struct Shape {
    size_t columns = 0;
    size_t outputs = 1;
    size_t parallel_trees = 1;
  };
  // Internal: it is damaged, or of another forest. Precondition: something was remembered.
  static Result<ForestMemory> Read(const std::vector<std::string>& remembered, const Shape& shape);

  ForestStart start;
  std::unique_ptr<CutPoints> cuts;
  std::vector<ForestRound> rounds;
};

}  // namespace sluice::models::histogram
