#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/trees/histogram/binned_rows.h"
#include "models/trees/histogram/gradient_sums.h"
#include "models/trees/histogram/objective.h"
#include "models/trees/histogram/samples.h"
#include "models/trees/histogram/threads.h"
#include "models/trees/histogram/tree.h"

namespace sluice::models::histogram {

// The largest derivatives that rows can have whose largest weight is `weight`; nullopt: that
// depends on their margins.
std::optional<GradientRange> BoundsOf(const Objective& objective, float weight);

// What the objective takes the mean of for its best constant: as derivatives, the hessian is the
// weight. `weights`: empty, or of each row.
GradientRange MeasureLabels(std::span<const float> labels, std::span<const float> weights,
                            const Objective& objective);

// Some of the rows that trees are grown on: their bins, margins and derivatives, and the node of
// the open tree that each is in. What it adds up (the largest derivatives, the sums of a tree, the
// histograms of nodes) is to be merged with what other shares have of other rows; the splits and
// trees that follow from the whole come back to each. All merges are exact, associative and
// commutative: the trees do not depend on how rows are spread. Not thread-safe.
class RowShare {
 public:
  // `cuts`, `threads` and `objective` must live as long. `first_row`: the name of the first row;
  // the others follow.
  RowShare(const CutPoints* cuts, bool sparse, const Objective* objective, Threads* threads,
           uint64_t first_row = 0);

  // Room for that many rows; of sparse ones only for what all have.
  void Reserve(size_t rows);
  // `weights`: empty, or of each row. `margins`: rows x outputs, or empty: StartFrom will say.
  void Append(const RowMatrix& rows, std::span<const float> labels, std::span<const float> weights,
              std::span<const float> margins);
  // Bins, labels and weights in a form for processes of the same build, with the same cuts.
  std::string Write() const;
  // Adds rows that were written; their margins are still to be set. False: they are damaged.
  bool AppendWritten(std::string_view bytes);
  // Every margin.
  void StartFrom(float margin) { margins_.assign(rows() * objective_->outputs(), margin); }
  size_t rows() const { return bins_.rows(); }
  std::span<const float> labels() const { return labels_; }
  std::span<const float> weights() const { return weights_; }
  std::span<const float> margins() const { return margins_; }

  // Of MeasureLabels' numbers the largest, then the sum.
  GradientRange MeasureLabels() const {
    return histogram::MeasureLabels(labels_, weights_, *objective_);
  }
  GradientSum SumLabels(const GradientScale& scale) const;

  // The largest weight; 1 if there are none.
  float MostWeight() const;
  // A round: the largest derivatives of each output, then the derivatives in the unit that follows
  // from the largest of all shares.
  std::vector<GradientRange> MeasureRange() const;
  void BeginRound(std::span<const GradientScale> scales);

  // A tree of an output: the sum of its rows, which are all in the root.
  GradientSum BeginTree(size_t output, const RowSample& sample);
  // Adds the histograms of these nodes to `sums`.
  void AddHistograms(std::span<const int32_t> nodes, std::span<Histogram* const> sums) const;
  struct NodeSplit {
    int32_t node = 0, left = 0;  // the right child follows the left one
    SplitRule rule;
    bool last = false;  // neither child will be summed or split
  };
  void Split(std::span<const NodeSplit> splits);
  // Adds the grown tree to the margins.
  void EndTree(const Tree& tree);
  // The same of a tree that was grown on other rows.
  void AddTree(const Tree& tree, size_t output);

 private:
  struct Places {
    size_t begin = 0, end = 0;
    size_t size() const { return end - begin; }
  };
  std::span<const uint32_t> RowsOf(int32_t node) const {
    const Places& places = places_[static_cast<size_t>(node)];
    return {order_.data() + places.begin, places.size()};
  }
  void Part(std::span<const NodeSplit> splits);
  // Calls take(rows, gradients, hessians) for each block of rows, weighed.
  template <typename Take>
  void Derive(Take take) const;
  float LeafOf(const Tree& tree, const std::vector<std::vector<uint8_t>>& sides, size_t row) const;
  std::vector<std::vector<uint8_t>> SidesOf(const Tree& tree) const;

  const CutPoints* cuts_;
  const Objective* objective_;
  Threads* threads_;
  const uint64_t first_row_;
  BinnedRows bins_;
  std::vector<float> labels_;
  std::vector<float> weights_;   // empty: each is 1
  std::vector<float> margins_;   // rows x outputs
  std::vector<uint64_t> words_;  // outputs x rows, of GradientScale
  // Of the open tree.
  size_t output_ = 0;
  std::vector<uint32_t> order_, parted_;  // the tree's rows, those of a node together
  std::vector<Places> places_;            // of each node, in order_
  std::vector<NodeSplit> last_;           // whose rows stay in their parents' places
};

}  // namespace sluice::models::histogram
