#include "models/trees/histogram/followed_shard_internal.h"

#include <algorithm>

#include "models/trees/histogram/samples.h"
#include "models/trees/histogram/tree_messages_internal.h"

namespace sluice::models::histogram {

void FollowedShard::Follow(const KnownForest& forest) {
  if (!started_) {
    rows_->StartFrom(forest.margin);
    started_ = true;
  }
  EndOpen(forest);
  const bool in_round = !forest.scales.empty() && round_ == forest.round_begin;
  if (!in_round && !forest.scales.empty()) {
    AddTrees(forest, forest.round_begin);
    rows_->BeginRound(forest.scales);
    round_ = forest.round_begin;
  }
  AddTrees(forest, forest.complete());
  if (forest.open()) {
    Grow(forest.trees.back());
  }
}

// The tree that grew when this shard was last asked may have been completed since.
void FollowedShard::EndOpen(const KnownForest& forest) {
  if (!growing_ || trees_ >= forest.complete()) {
    return;
  }
  Grow(forest.trees[trees_]);
  rows_->EndTree(FromProto(forest.trees[trees_]));
  growing_ = false;
  ++trees_;
}

void FollowedShard::AddTrees(const KnownForest& forest, size_t until) {
  for (; trees_ < until; ++trees_) {
    rows_->AddTree(FromProto(forest.trees[trees_]), forest.trees[trees_].output());
  }
}

void FollowedShard::Grow(const GrownTree& tree) {
  if (!growing_) {
    total_ = rows_->BeginTree(tree.output(), RowSample(settings_.rules, tree.name()));
    growing_ = true;
    splits_ = 0;
    nodes_ = 1;
  }
  // Children come after their parents: those of one level are parted together.
  std::vector<RowShare::NodeSplit> level;
  for (; splits_ < tree.splits_size(); ++splits_) {
    const RowShare::NodeSplit split = FromProto(tree.splits(splits_));
    if (split.node >= nodes_) {
      Part(&level);
    }
    level.push_back(split);
  }
  Part(&level);
}

void FollowedShard::Part(std::vector<RowShare::NodeSplit>* level) {
  rows_->Split(*level);
  for (const RowShare::NodeSplit& split : *level) {
    nodes_ = std::max(nodes_, split.left + 2);
  }
  level->clear();
}

}  // namespace sluice::models::histogram
