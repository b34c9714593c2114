#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "models/trees/histogram/row_share.h"
#include "models/trees/histogram/samples.h"
#include "models/trees/histogram/split_search.h"
#include "models/trees/histogram/threads.h"

namespace sluice::models::histogram {

// Decides how one tree grows, from sums over all rows only; it never sees a row. Passes over the
// rows alternate with decisions until none is left:
//   NodesToSum -> the shares' histograms, merged -> Take -> NextSplits -> the shares part their
//   rows.
// Of two children only the one of the smaller hessian is summed; the other is what their parent has
// more. Not thread-safe.
class TreeGrowth {
 public:
  // All must live as long. `sparse`: histograms come without the rows that have no number.
  TreeGrowth(const CutPoints& cuts, bool sparse, const TreeRules& rules, const GradientScale& scale,
             ColumnSample columns, Threads* threads);

  // `total`: of the root.
  void Begin(const GradientSum& total, size_t rows);
  std::span<const int32_t> NodesToSum() const { return to_sum_; }
  // Histograms in the order of NodesToSum.
  void Take(std::vector<Histogram> sums);
  // Empty: the tree is grown.
  std::vector<RowShare::NodeSplit> NextSplits();
  Tree Finish();

 private:
  struct OpenNode {
    int depth = 0;
    GradientSum total;
    Histogram histogram;  // until its children have theirs; empty: they are summed both
    FoundSplit split;
  };
  void Open(int32_t node, int depth, const GradientSum& total);
  bool MayPart(int depth, const GradientSum& total) const;
  // Whether any of them may be split.
  bool OpenChildren(OpenNode* open, int32_t left);
  void AskFor(int32_t node, const GradientSum& total);
  void SearchSplits(std::span<const int32_t> nodes);
  void CompleteMissing(const GradientSum& total, Histogram* sums) const;
  int32_t AddNode(int32_t parent, const GradientSum& total);

  const CutPoints& cuts_;
  const bool sparse_;
  const TreeRules& rules_;
  const NodeValue value_;
  const ColumnSample columns_;
  Threads* threads_;
  double least_gain_ = 0;
  Tree tree_;
  int leaves_ = 1;
  size_t histogram_bytes_ = 0;
  std::map<int32_t, OpenNode> open_;  // candidates to be split, and nodes that wait for their sums
  std::vector<int32_t> to_sum_;
  std::vector<GradientSum> totals_;  // of to_sum_
  // Nodes whose histograms are the rest of their parent's when the sibling's has come.
  struct Rest {
    int32_t node = 0;
    size_t sibling = 0;  // its place in to_sum_
    Histogram parent;
  };
  std::vector<Rest> rests_;
};

}  // namespace sluice::models::histogram
