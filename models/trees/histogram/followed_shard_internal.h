#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/trees/histogram/gradient_sums.h"
#include "models/trees/histogram/row_share.h"
#include "models/trees/histogram/settings.h"
#include "models/trees/histogram/tree_pass.pb.h"

namespace sluice::models::histogram {

// The forest as far as a worker knows it.
struct KnownForest {
  std::vector<GrownTree> trees;       // the last one may still grow
  size_t round_begin = 0;             // trees before the open round
  std::vector<GradientScale> scales;  // of that round; empty: there is none
  float margin = 0;

  bool open() const { return !trees.empty() && trees.back().values().empty(); }
  size_t complete() const { return trees.size() - (open() ? 1 : 0); }
};

// The bins of a shard, and how far they have followed the forest. Not thread-safe.
class FollowedShard {
 public:
  // `settings` must live as long.
  FollowedShard(const Settings& settings, std::unique_ptr<RowShare> rows)
      : settings_(settings), rows_(std::move(rows)) {}

  const RowShare& rows() const { return *rows_; }
  size_t trees() const { return trees_; }  // that the margins have
  // Of the tree that grows: the sum of its rows.
  const GradientSum& total() const { return total_; }

  // Precondition: the forest is the one that was followed before, and goes on.
  void Follow(const KnownForest& forest);

 private:
  void EndOpen(const KnownForest& forest);
  void AddTrees(const KnownForest& forest, size_t until);
  void Grow(const GrownTree& tree);
  void Part(std::vector<RowShare::NodeSplit>* level);

  const Settings& settings_;
  std::unique_ptr<RowShare> rows_;
  bool started_ = false;
  size_t trees_ = 0;
  std::optional<size_t> round_;  // whose derivatives it has: trees before it
  bool growing_ = false;         // the tree `trees_`
  GradientSum total_;
  int splits_ = 0;     // of that tree, those that it has followed
  int32_t nodes_ = 1;  // of that tree, those that have rows
};

}  // namespace sluice::models::histogram
