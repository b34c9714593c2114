#include "models/trees/histogram/tree_growth.h"

#include <algorithm>
#include <utility>

namespace sluice::models::histogram {
namespace {

// XGBoost's least gain of a split, for hessians of 1 a row.
constexpr double kLeastGain = 1e-6;
constexpr size_t kColumnsPerTask = 16;
// Histograms that are kept for the sake of children, at most; and of children that are summed at a
// time. Only wide tables have so many.
constexpr size_t kMostKeptBytes = 256U << 20U;
constexpr size_t kMostSummedBytes = 128U << 20U;

}  // namespace

TreeGrowth::TreeGrowth(const CutPoints& cuts, bool sparse, const TreeRules& rules,
                       const GradientScale& scale, ColumnSample columns, Threads* threads)
    : cuts_(cuts),
      sparse_(sparse),
      rules_(rules),
      value_(rules, scale),
      columns_(std::move(columns)),
      threads_(threads) {}

int32_t TreeGrowth::AddNode(int32_t parent, const GradientSum& total) {
  Tree::Node node;
  node.parent = parent;
  node.hessian = static_cast<float>(value_.Hessian(total));
  node.weight = static_cast<float>(value_.Weight(total));
  node.value = static_cast<float>(static_cast<double>(node.weight) * rules_.eta);
  tree_.nodes.push_back(node);
  return static_cast<int32_t>(tree_.nodes.size()) - 1;
}

bool TreeGrowth::MayPart(int depth, const GradientSum& total) const {
  return (rules_.max_depth == 0 || depth < rules_.max_depth) &&
         value_.Hessian(total) >= 2 * rules_.min_child_weight && total.hessian > 1;
}

void TreeGrowth::Begin(const GradientSum& total, size_t rows) {
  const double mean = value_.Hessian(total) / static_cast<double>(std::max<size_t>(1, rows));
  least_gain_ = std::max(rules_.gamma, kLeastGain * std::min(1.0, mean));
  AddNode(-1, total);
  if (MayPart(0, total)) {
    Open(0, 0, total);
    AskFor(0, total);
  }
}

void TreeGrowth::Open(int32_t node, int depth, const GradientSum& total) {
  open_[node] = {.depth = depth, .total = total, .histogram = {}, .split = {}};
}

void TreeGrowth::AskFor(int32_t node, const GradientSum& total) {
  to_sum_.push_back(node);
  totals_.push_back(total);
}

void TreeGrowth::CompleteMissing(const GradientSum& total, Histogram* sums) const {
  for (size_t c = 0; c < cuts_.columns(); ++c) {
    GradientSum rest = total;
    const uint32_t missing = cuts_.first(c) + cuts_.bins(c);
    for (uint32_t i = cuts_.first(c); i < missing; ++i) {
      rest.Subtract((*sums)[i]);
    }
    (*sums)[missing] = rest;
  }
}

void TreeGrowth::Take(std::vector<Histogram> sums) {
  std::vector<int32_t> fresh;
  for (size_t i = 0; i < sums.size() && sparse_; ++i) {
    CompleteMissing(totals_[i], &sums[i]);
  }
  for (Rest& rest : rests_) {
    for (size_t i = 0; i < rest.parent.size(); ++i) {
      rest.parent[i].Subtract(sums[rest.sibling][i]);
    }
    open_[rest.node].histogram = std::move(rest.parent);
    fresh.push_back(rest.node);
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto found = open_.find(to_sum_[i]);
    if (found != open_.end()) {  // else it was asked for its sibling's sake
      found->second.histogram = std::move(sums[i]);
      fresh.push_back(to_sum_[i]);
    }
  }
  rests_.clear();
  to_sum_.clear();
  totals_.clear();
  SearchSplits(fresh);
  for (const int32_t node : fresh) {
    const auto found = open_.find(node);
    OpenNode& open = found->second;
    const bool children_may_part = rules_.max_depth == 0 || open.depth + 1 < rules_.max_depth;
    const size_t bytes = open.histogram.size() * sizeof(GradientSum);
    if (open.split.gain == 0) {
      open_.erase(found);
    } else if (!children_may_part || histogram_bytes_ + bytes > kMostKeptBytes) {
      open.histogram = {};
    } else {
      histogram_bytes_ += bytes;
    }
  }
}

void TreeGrowth::SearchSplits(std::span<const int32_t> nodes) {
  struct Task {
    OpenNode* node;
    std::span<const uint32_t> columns;
    FoundSplit found;
  };
  std::vector<std::vector<uint32_t>> columns;
  std::vector<Task> tasks;
  columns.reserve(nodes.size());
  for (const int32_t node : nodes) {
    OpenNode& open = open_[node];
    columns.push_back(columns_.OfNode(open.depth, static_cast<uint64_t>(node)));
    const std::span<const uint32_t> all = columns.back();
    for (size_t first = 0; first < all.size(); first += kColumnsPerTask) {
      tasks.push_back(
          {&open, all.subspan(first, std::min(kColumnsPerTask, all.size() - first)), {}});
    }
  }
  threads_->Run(tasks.size(), [&](size_t i, size_t) {
    Task& task = tasks[i];
    task.found =
        FindSplit(cuts_, value_, task.node->histogram, task.node->total, task.columns, least_gain_);
  });
  for (const Task& task : tasks) {  // columns ascend, so that the first of equals stays
    if (task.found.Better(task.node->split)) {
      task.node->split = task.found;
    }
  }
}

std::vector<RowShare::NodeSplit> TreeGrowth::NextSplits() {
  std::vector<int32_t> chosen;
  if (!open_.empty() && rules_.best_first) {
    const auto best =
        std::max_element(open_.begin(), open_.end(), [](const auto& a, const auto& b) {
          return a.second.split.gain < b.second.split.gain;  // of equals the first node
        });
    chosen.push_back(best->first);
  } else {  // those of the level, which come before its children
    const size_t children = 2 * sizeof(GradientSum) * cuts_.all_bins();
    const size_t most = std::max<size_t>(1, kMostSummedBytes / children);
    for (const auto& [node, open] : open_) {
      if (chosen.size() == most || open.depth > open_.begin()->second.depth) {
        break;
      }
      chosen.push_back(node);
    }
  }
  std::vector<RowShare::NodeSplit> splits;
  for (const int32_t node : chosen) {
    if (rules_.max_leaves > 0 && leaves_ >= rules_.max_leaves) {
      open_.clear();
      break;
    }
    ++leaves_;
    OpenNode open = std::move(open_[node]);
    open_.erase(node);
    const int32_t left = AddNode(node, open.split.left);
    AddNode(node, open.split.right);
    Tree::Node& parent = tree_.nodes[static_cast<size_t>(node)];
    parent.left = left;
    parent.split = open.split.rule;
    parent.gain = static_cast<float>(open.split.gain);
    const bool further = OpenChildren(&open, left);
    splits.push_back({.node = node, .left = left, .rule = open.split.rule, .last = !further});
  }
  return splits;
}

bool TreeGrowth::OpenChildren(OpenNode* open, int32_t left) {
  const int depth = open->depth + 1;
  const GradientSum totals[] = {open->split.left, open->split.right};
  const bool may_part[] = {MayPart(depth, totals[0]), MayPart(depth, totals[1])};
  histogram_bytes_ -= open->histogram.size() * sizeof(GradientSum);
  for (int i = 0; i < 2; ++i) {
    if (may_part[i]) {
      Open(left + i, depth, totals[i]);
    }
  }
  const int smaller = totals[0].hessian <= totals[1].hessian ? 0 : 1;
  const int larger = 1 - smaller;
  const bool subtracts = !open->histogram.empty() && may_part[larger];
  if (may_part[smaller] || subtracts) {
    AskFor(left + smaller, totals[smaller]);
  }
  if (subtracts) {
    rests_.push_back({left + larger, to_sum_.size() - 1, std::move(open->histogram)});
  } else if (may_part[larger]) {
    AskFor(left + larger, totals[larger]);
  }
  return may_part[0] || may_part[1];
}

Tree TreeGrowth::Finish() {
  open_.clear();
  return std::move(tree_);
}

}  // namespace sluice::models::histogram
