#include "models/trees/histogram/cut_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/trees/histogram/number_text.h"

namespace sluice::models::histogram {
namespace {

using Cell = ValueCounts::Cell;

// A number above `low` and at most `high`.
float MiddleOf(float low, float high) {
  const double middle = (static_cast<double>(low) + static_cast<double>(high)) / 2;
  const auto rounded = static_cast<float>(middle);
  return rounded > low && rounded <= high ? rounded : high;
}

// Above every number up to `most`, as far as floats go.
float Beyond(float most) {
  constexpr float kLeast = 1e-5F;
  const float beyond = most + std::fabs(most) + kLeast;
  return std::isfinite(beyond) ? beyond : std::numeric_limits<float>::max();
}

// The last cell of each bin. A cell of more than an equal share has a bin of its own; the others
// share what is left.
std::vector<size_t> LastCells(const std::vector<Cell>& cells, size_t most_bins) {
  std::vector<size_t> last;
  if (cells.size() <= most_bins) {
    for (size_t i = 0; i < cells.size(); ++i) {
      last.push_back(i);
    }
    return last;
  }
  uint64_t all = 0;
  for (const Cell& cell : cells) {
    all += cell.count;
  }
  const auto is_large = [&](const Cell& cell) { return cell.count * most_bins >= all; };
  uint64_t rest = all;  // of the small cells that are in no bin yet
  size_t bins = most_bins;
  for (const Cell& cell : cells) {
    rest -= is_large(cell) ? cell.count : 0;
    bins -= is_large(cell) ? 1 : 0;
  }
  uint64_t held = 0;  // in the open bin
  for (size_t i = 0; i < cells.size(); ++i) {
    const bool own = is_large(cells[i]);
    held += own ? 0 : cells[i].count;
    const bool before_own = i + 1 < cells.size() && is_large(cells[i + 1]);
    const bool full = bins > 1 && held * bins >= rest;
    if (own || full || i + 1 == cells.size() || (before_own && held > 0 && bins > 1)) {
      last.push_back(i);
      if (!own) {
        rest -= held;
        bins -= bins > 1 ? 1 : 0;
      }
      held = 0;
    }
  }
  return last;
}

}  // namespace

CutPoints::CutPoints(std::span<const ValueCounts> columns, size_t most_bins,
                     std::span<const size_t> categories)
    : by_category_(columns.size(), 0) {
  for (const size_t column : categories) {
    const std::vector<Cell> cells = columns[column].Cells();
    const bool fit = !cells.empty() && cells.size() <= most_bins && cells.front().least >= 0 &&
                     cells.back().most < kMostCategories;
    by_category_[column] = fit ? 1 : 0;
  }
  first_.push_back(0);
  for (const ValueCounts& counts : columns) {
    const std::vector<Cell> cells = counts.Cells();
    const std::vector<size_t> last = LastCells(cells, most_bins);
    if (by_category(first_.size() - 1)) {
      for (const Cell& cell : cells) {
        thresholds_.push_back(cell.least);
      }
    } else {
      for (size_t i = 0; i + 1 < last.size(); ++i) {
        thresholds_.push_back(MiddleOf(cells[last[i]].most, cells[last[i] + 1].least));
      }
      thresholds_.push_back(cells.empty() ? 0 : Beyond(cells.back().most));
    }
    thresholds_.push_back(0);  // of the missing ones
    first_.push_back(static_cast<uint32_t>(thresholds_.size()));
    most_bins_ = std::max(most_bins_, bins(first_.size() - 2));
  }
}

std::string CutPoints::Write() const {
  std::string bytes;
  WriteNumbers(first_, &bytes);
  WriteNumbers(thresholds_, &bytes);
  WriteNumbers(by_category_, &bytes);
  return bytes;
}

Result<CutPoints> CutPoints::Read(std::string_view bytes) {
  CutPoints cuts;
  bool whole = AppendNumbers(&bytes, &cuts.first_) && AppendNumbers(&bytes, &cuts.thresholds_) &&
               AppendNumbers(&bytes, &cuts.by_category_) && !cuts.first_.empty() &&
               cuts.first_.front() == 0 && cuts.first_.back() == cuts.thresholds_.size() &&
               cuts.by_category_.size() == cuts.columns();
  for (size_t column = 0; whole && column < cuts.columns(); ++column) {
    whole = cuts.first_[column] < cuts.first_[column + 1];
    cuts.most_bins_ = std::max(cuts.most_bins_, whole ? cuts.bins(column) : 0);
  }
  return whole ? Result<CutPoints>(std::move(cuts)) : InvalidArgument("the cut points are damaged");
}

uint32_t CutPoints::BinOf(size_t column, float value) const {
  const uint32_t count = bins(column);
  if (std::isnan(value)) {
    return count;
  }
  const float* begin = thresholds_.data() + first_[column];
  if (by_category(column)) {
    const float* found = std::lower_bound(begin, begin + count, value);
    return found != begin + count && *found == value ? static_cast<uint32_t>(found - begin) : count;
  }
  const float* low = begin;
  for (uint32_t left = count - 1; left > 0;) {  // how many of the first count - 1 are <= value
    const uint32_t half = (left + 1) / 2;
    low += low[half - 1] <= value ? half : 0;
    left -= half;
  }
  return static_cast<uint32_t>(low - begin);
}

}  // namespace sluice::models::histogram
