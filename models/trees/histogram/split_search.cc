#include "models/trees/histogram/split_search.h"

#include <algorithm>

namespace sluice::models::histogram {

double NodeValue::Shrunk(double gradient) const {
  if (gradient > rules_.alpha) {
    return gradient - rules_.alpha;
  }
  return gradient < -rules_.alpha ? gradient + rules_.alpha : 0;
}

double NodeValue::Weight(const GradientSum& sum) const {
  if (!Enough(sum)) {
    return 0;
  }
  const double weight =
      -Shrunk(scale_.gradient(sum.gradient)) / (scale_.hessian(sum.hessian) + rules_.lambda);
  const double most = rules_.max_delta_step;
  return most > 0 ? std::clamp(weight, -most, most) : weight;
}

double NodeValue::Gain(const GradientSum& sum) const {
  const double gradient = Shrunk(scale_.gradient(sum.gradient));
  const double hessian = scale_.hessian(sum.hessian) + rules_.lambda;
  if (rules_.max_delta_step == 0) {
    return gradient * gradient / hessian;
  }
  const double weight = Weight(sum);
  return -(2 * gradient * weight + hessian * weight * weight);
}

namespace {

class ColumnSearch {
 public:
  ColumnSearch(const NodeValue& value, const GradientSum& total, double least)
      : value_(value), total_(total), of_node_(value.Gain(total)), least_(least) {}

  void Search(uint32_t column, std::span<const GradientSum> bins, const GradientSum& missing) {
    const auto last = static_cast<uint32_t>(bins.size());
    GradientSum below;
    for (uint32_t bin = 0; bin < last; ++bin) {
      if (bins[bin].empty()) {
        continue;  // the same as the last one
      }
      below.Add(bins[bin]);
      Try({.column = column, .bin = bin, .missing_left = false}, below, missing.empty());
    }
    if (missing.empty()) {
      return;
    }
    below = missing;
    for (uint32_t bin = 0; bin + 1 < last; ++bin) {
      if (!bins[bin].empty()) {
        below.Add(bins[bin]);
        Try({.column = column, .bin = bin, .missing_left = true}, below, false);
      }
    }
  }
  const FoundSplit& best() const { return best_; }

 private:
  // `either`: no row is missing; one later goes the way of most.
  void Try(const SplitRule& rule, const GradientSum& left, bool either) {
    GradientSum right = total_;
    right.Subtract(left);
    if (!value_.Enough(left) || !value_.Enough(right)) {
      return;
    }
    const double gain = value_.Gain(left) + value_.Gain(right) - of_node_;
    if (gain > std::max(least_, best_.gain)) {
      best_ = {gain, rule, left, right};
      best_.rule.missing_left = either ? left.hessian >= right.hessian : rule.missing_left;
    }
  }

  const NodeValue& value_;
  const GradientSum total_;
  const double of_node_, least_;
  FoundSplit best_;
};

}  // namespace

FoundSplit FindSplit(const CutPoints& cuts, const NodeValue& value, const Histogram& histogram,
                     const GradientSum& total, std::span<const uint32_t> columns, double least) {
  ColumnSearch search(value, total, least);
  for (const uint32_t column : columns) {
    const GradientSum* bins = histogram.data() + cuts.first(column);
    search.Search(column, {bins, cuts.bins(column)}, bins[cuts.bins(column)]);
  }
  return search.best();
}

}  // namespace sluice::models::histogram
