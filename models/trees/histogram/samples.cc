#include "models/trees/histogram/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/mix_bits.h"

namespace sluice::models::histogram {
namespace {

enum class Stream : uint64_t { kRows = 1, kTree, kLevel, kNode };

uint64_t KeyFor(uint64_t key, Stream stream, uint64_t name) {
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15U;
  return MixBits(key + kStep * (4 * name + static_cast<uint64_t>(stream)));
}

uint64_t TreeKey(const TreeRules& rules, uint64_t tree) {
  return MixBits(MixBits(rules.seed + 1) + tree);
}

// The share of `columns` with the smallest keys; at least one.
std::vector<uint32_t> Choose(std::vector<uint32_t> columns, double share, uint64_t key) {
  if (share >= 1) {
    return columns;
  }
  const auto count =
      std::max<size_t>(1, static_cast<size_t>(share * static_cast<double>(columns.size())));
  std::vector<std::pair<uint64_t, uint32_t>> keys;
  for (const uint32_t column : columns) {
    keys.emplace_back(MixBits(key ^ MixBits(column + 1)), column);
  }
  std::nth_element(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count - 1), keys.end());
  columns.clear();
  for (size_t i = 0; i < count; ++i) {
    columns.push_back(keys[i].second);
  }
  std::sort(columns.begin(), columns.end());
  return columns;
}

std::vector<uint32_t> AllOf(size_t columns) {
  std::vector<uint32_t> all(columns);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

RowSample::RowSample(const TreeRules& rules, uint64_t tree)
    : all_(rules.subsample >= 1),
      key_(KeyFor(TreeKey(rules, tree), Stream::kRows, 0)),
      below_(all_ ? 0 : static_cast<uint64_t>(std::ldexp(rules.subsample, 64))) {}

bool RowSample::Has(uint64_t row) const {
  return all_ || MixBits(key_ ^ MixBits(row + 1)) < below_;
}

ColumnSample::ColumnSample(const TreeRules& rules, uint64_t tree, size_t columns)
    : by_level_(rules.colsample_bylevel),
      by_node_(rules.colsample_bynode),
      key_(TreeKey(rules, tree)),
      tree_(Choose(AllOf(columns), rules.colsample_bytree, KeyFor(key_, Stream::kTree, 0))) {}

std::vector<uint32_t> ColumnSample::OfNode(int depth, uint64_t node) const {
  return Choose(
      Choose(tree_, by_level_, KeyFor(key_, Stream::kLevel, static_cast<uint64_t>(depth))),
      by_node_, KeyFor(key_, Stream::kNode, node));
}

}  // namespace sluice::models::histogram
