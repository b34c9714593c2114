#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/trees/histogram/cut_points.h"
#include "models/trees/histogram/objective.h"
#include "models/trees/histogram/tree.h"

namespace sluice::models::histogram {

// A model in XGBoost 1.7's UBJSON: trees in the order in which they were grown, round by round.
class SavedForest {
 public:
  // `base_score`: of the file, a float in the shortest text.
  SavedForest(std::string base_score, size_t columns, size_t outputs, size_t parallel_trees)
      : base_score_(std::move(base_score)),
        columns_(columns),
        outputs_(outputs),
        parallel_trees_(parallel_trees) {}
  // The trees and the base score of a model that CheckBooster has passed.
  static Result<SavedForest> Read(std::string_view bytes, size_t columns, size_t outputs);

  const std::string& base_score() const { return base_score_; }
  size_t parallel_trees() const { return parallel_trees_; }
  size_t rounds() const { return trees_.size() / (outputs_ * parallel_trees_); }
  void Add(const Tree& tree, const CutPoints& cuts, size_t output);
  void KeepRounds(size_t count);
  std::string Write(const std::string& objective, const Objective::Stored& settings) const;

 private:
  std::string base_score_;
  size_t columns_, outputs_, parallel_trees_;
  std::vector<std::string> trees_;  // as they are written
  std::vector<int64_t> outputs_of_trees_;
};

}  // namespace sluice::models::histogram
