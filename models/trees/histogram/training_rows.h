#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/histogram/cut_points.h"
#include "models/trees/histogram/gradient_sums.h"
#include "models/trees/histogram/row_share.h"
#include "models/trees/histogram/tree.h"
#include "models/trees/histogram/value_counts.h"

namespace sluice::models::histogram {

class ForestStart;
class GrownTree;

// The rows that a forest is grown on, in this process or on many workers: what a learner asks of
// them. Every answer is an exact sum, a largest number or a count over all rows, so the forest does
// not depend on where they are. Questions come in the order of these declarations; the last ones
// are repeated for each round, tree and level. Not thread-safe.
class TrainingRows {
 public:
  virtual ~TrainingRows() = default;

  // How often each number of each column occurs. InvalidArgument: there are no rows, or the
  // objective refuses a label.
  virtual Result<std::vector<ValueCounts>> Count() = 0;
  virtual size_t rows() const = 0;
  // From now on rows are bins of `cuts`, which must live as long; those held out, too.
  virtual Status Bin(const CutPoints* cuts) = 0;
  // What GoOn needs, of rows that are bins.
  virtual void Describe(ForestStart* start) const = 0;
  // Instead of Count and Bin, with the cuts of the start: a training goes on over the same rows.
  // Aborted (40001): they are others, as far as that shows.
  virtual Status GoOn(const ForestStart& start, const CutPoints* cuts) = 0;
  // The rows that judge each round, in this process; null: there are none.
  virtual RowShare* held_out() = 0;

  // As of RowShare, of all rows.
  virtual GradientRange MeasureLabels() = 0;
  virtual GradientSum SumLabels(const GradientScale& scale) = 0;
  virtual void StartFrom(float margin) = 0;
  virtual Result<std::vector<GradientRange>> MeasureRange() = 0;
  // `ranges`: of each output.
  virtual void BeginRound(std::span<const GradientRange> ranges) = 0;
  // `name`: of the tree, by which its rows are sampled.
  virtual Result<GradientSum> BeginTree(size_t output, uint64_t name) = 0;
  virtual Result<std::vector<Histogram>> Sum(std::span<const int32_t> nodes) = 0;
  virtual void Split(std::span<const RowShare::NodeSplit> splits) = 0;
  virtual void EndTree(const Tree& tree) = 0;
  // A complete tree that was grown before, on these rows.
  virtual void AddTree(const GrownTree& tree) = 0;

  // Metrics by the margins of now, "rmse"; those that cannot be told are left out.
  virtual Result<RoundMetrics> Metrics(const std::vector<std::string>& names) = 0;
};

}  // namespace sluice::models::histogram
