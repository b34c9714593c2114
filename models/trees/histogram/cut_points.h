#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/trees/histogram/value_counts.h"

namespace sluice::models::histogram {

// The bins of every column: bin b holds the numbers below Threshold(b) that no earlier bin holds;
// the last one all others, too, and one more the rows without a number. A column of categories has
// a bin for each that was seen; others are like missing ones. Immutable.
class CutPoints {
 public:
  // A file has a bit for each category below the largest.
  static constexpr float kMostCategories = 1024;

  // At most `most_bins` of a column, of as equal counts as possible; a bin for each number if there
  // are no more. Cuts lie in the middle between two numbers.
  // `categories`: the columns that hold ids of categories, unless these are more than bins, or not
  // below kMostCategories: then they are numbers.
  CutPoints(std::span<const ValueCounts> columns, size_t most_bins,
            std::span<const size_t> categories = {});

  // In a form for processes of the same build.
  std::string Write() const;
  // InvalidArgument: damaged.
  static Result<CutPoints> Read(std::string_view bytes);

  size_t columns() const { return first_.size() - 1; }
  // Without that for missing numbers, whose code this is.
  uint32_t bins(size_t column) const { return first_[column + 1] - first_[column] - 1; }
  // The place of a column's bin 0 among the bins of all columns.
  uint32_t first(size_t column) const { return first_[column]; }
  std::span<const uint32_t> first() const { return {first_.data(), columns()}; }
  size_t all_bins() const { return first_.back(); }
  uint32_t most_bins() const { return most_bins_; }  // of any column
  // Rows in bins [0, bin] are below it; that of the last bin is above every number in training.
  float Threshold(size_t column, uint32_t bin) const { return thresholds_[first_[column] + bin]; }
  bool by_category(size_t column) const { return by_category_[column] != 0; }
  // Of a bin of such a column.
  int32_t Category(size_t column, uint32_t bin) const {
    return static_cast<int32_t>(thresholds_[first_[column] + bin]);
  }
  uint32_t BinOf(size_t column, float value) const;

 private:
  CutPoints() = default;

  std::vector<uint32_t> first_;    // of each column, and the end
  std::vector<float> thresholds_;  // of all bins, or their categories; unused for the missing ones
  std::vector<uint8_t> by_category_;
  uint32_t most_bins_ = 0;
};

}  // namespace sluice::models::histogram
