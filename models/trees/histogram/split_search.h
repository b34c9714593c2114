#pragma once

#include <cstdint>
#include <span>

#include "models/trees/histogram/cut_points.h"
#include "models/trees/histogram/gradient_sums.h"
#include "models/trees/histogram/rules.h"
#include "models/trees/histogram/tree.h"

namespace sluice::models::histogram {

// What a split or a leaf is worth: XGBoost's formulas on exact sums, in double.
class NodeValue {
 public:
  NodeValue(const TreeRules& rules, const GradientScale& scale) : rules_(rules), scale_(scale) {}
  // What a leaf of these rows adds, before eta.
  double Weight(const GradientSum& sum) const;
  // `further`: added to the L2 penalty.
  double Gain(const GradientSum& sum, double further = 0) const;
  // By which categories are ordered: what a leaf of one would add, less if it has few rows.
  double Rank(const GradientSum& sum) const;
  // Whether a node may have only these rows.
  bool Enough(const GradientSum& sum) const {
    return sum.hessian > 0 && scale_.hessian(sum.hessian) >= rules_.min_child_weight;
  }
  double Hessian(const GradientSum& sum) const { return scale_.hessian(sum.hessian); }

 private:
  double Shrunk(double gradient) const;

  const TreeRules& rules_;
  const GradientScale& scale_;
};

struct FoundSplit {
  double gain = 0;  // 0: none was found
  SplitRule rule;
  GradientSum left, right;

  // Equal gains: the lower column, the lower bin, missing ones to the right.
  bool Better(const FoundSplit& other) const { return gain > other.gain; }
};

// The best split of a node by one of `columns`, which are ascending. `least`: gains up to it are
// none.
FoundSplit FindSplit(const CutPoints& cuts, const NodeValue& value, const Histogram& histogram,
                     const GradientSum& total, std::span<const uint32_t> columns, double least);

}  // namespace sluice::models::histogram
