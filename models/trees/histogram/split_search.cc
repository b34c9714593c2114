#include "models/trees/histogram/split_search.h"

#include <algorithm>
#include <utility>
#include <vector>

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

// In hessians: LightGBM's cat_smooth and cat_l2. Sets of categories are chosen from very many, so
// that those of few rows would win by chance.
constexpr double kFew = 10;
constexpr double kFurtherPenalty = 10;

double NodeValue::Rank(const GradientSum& sum) const {
  return -scale_.gradient(sum.gradient) / (scale_.hessian(sum.hessian) + rules_.lambda + kFew);
}

double NodeValue::Gain(const GradientSum& sum, double further) const {
  const double gradient = Shrunk(scale_.gradient(sum.gradient));
  const double hessian = scale_.hessian(sum.hessian) + rules_.lambda + further;
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
  // The best of two sets of categories is found among those that are together by rank (Fisher
  // 1958).
  void SearchSets(uint32_t column, std::span<const GradientSum> bins, const GradientSum& missing) {
    std::vector<std::pair<double, uint32_t>> ranked;
    for (uint32_t bin = 0; bin < bins.size(); ++bin) {
      if (!bins[bin].empty()) {
        ranked.emplace_back(value_.Rank(bins[bin]), bin);
      }
    }
    std::sort(ranked.begin(), ranked.end());
    size_t best = 0;  // how many of the first ranks are a set; 0: none
    bool first_has_missing = false;
    for (const bool with_missing : {false, true}) {
      if (with_missing && missing.empty()) {
        break;
      }
      GradientSum below = with_missing ? missing : GradientSum();
      for (size_t i = 0; i + (with_missing ? 1 : 0) < ranked.size(); ++i) {
        below.Add(bins[ranked[i].second]);
        if (Try({.column = column}, below, false, kFurtherPenalty)) {
          best = i + 1;
          first_has_missing = with_missing;
        }
      }
    }
    if (best > 0) {
      TakeSet(ranked, best,
              missing.empty() ? best_.left.hessian >= best_.right.hessian : first_has_missing);
    }
  }
  const FoundSplit& best() const { return best_; }

 private:
  // `either`: no row is missing; one later goes the way of most.
  bool Try(const SplitRule& rule, const GradientSum& left, bool either, double penalty = 0) {
    GradientSum right = total_;
    right.Subtract(left);
    if (!value_.Enough(left) || !value_.Enough(right)) {
      return false;
    }
    const double gain = value_.Gain(left, penalty) + value_.Gain(right, penalty) - of_node_;
    if (gain <= std::max(least_, best_.gain)) {
      return false;
    }
    best_ = {gain, rule, left, right};
    best_.rule.missing_left = either ? left.hessian >= right.hessian : rule.missing_left;
    return true;
  }

  // Makes the best split that of the first of `ranked`, and all others. XGBoost's format sends
  // categories that it does not name to the left: those of the side where missing ones are.
  void TakeSet(const std::vector<std::pair<double, uint32_t>>& ranked, size_t first, bool to_left) {
    for (size_t i = to_left ? first : 0; i < (to_left ? ranked.size() : first); ++i) {
      best_.rule.right_bins.push_back(ranked[i].second);
    }
    std::sort(best_.rule.right_bins.begin(), best_.rule.right_bins.end());
    best_.rule.missing_left = true;
    if (!to_left) {
      std::swap(best_.left, best_.right);
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
    const std::span<const GradientSum> values = {bins, cuts.bins(column)};
    const GradientSum& missing = bins[cuts.bins(column)];
    cuts.by_category(column) ? search.SearchSets(column, values, missing)
                             : search.Search(column, values, missing);
  }
  return search.best();
}

}  // namespace sluice::models::histogram
