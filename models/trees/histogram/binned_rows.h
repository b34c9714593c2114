#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/histogram/cut_points.h"
#include "models/trees/histogram/gradient_sums.h"
#include "models/trees/histogram/threads.h"

namespace sluice::models::histogram {

// Rows as the bins of their columns: a byte for each, or two if a column has more than 255; of
// sparse rows, four for each number that is there. Reading is thread-safe.
class BinnedRows {
 public:
  // `cuts` must live as long.
  BinnedRows(const CutPoints* cuts, bool sparse);

  void Reserve(size_t rows);
  void Append(const RowMatrix& rows, Threads* threads);
  // Rows in a form for processes of the same build, with the same cuts.
  void Write(std::string* bytes) const;
  // Adds rows that were written; false: they are damaged.
  bool AppendWritten(std::string_view bytes);
  size_t rows() const { return rows_; }
  // The column's code; cuts' bins(column): missing.
  uint32_t BinOf(size_t row, size_t column) const;
  // Adds words[row] of each of `rows` to the bins of its columns; of sparse rows, to those of the
  // numbers that are there.
  void AddTo(std::span<const uint32_t> rows, const uint64_t* words, Histogram* sums) const;
  // Calls take(row, left[code]) for each of the rows.
  template <typename Take>
  void EachSide(std::span<const uint32_t> rows, size_t column, const std::vector<uint8_t>& left,
                Take take) const {
    if (rows.empty()) {
      return;  // there may be no codes at all
    }
    const auto each = [&](const auto* codes) {
      for (size_t i = 0; i < rows.size(); ++i) {
        __builtin_prefetch(codes + rows[std::min(i + kAhead, rows.size() - 1)] * columns_);
        take(rows[i], size_t{left[codes[rows[i] * columns_]]});
      }
    };
    if (sparse_) {
      for (const uint32_t row : rows) {
        take(row, size_t{left[BinOf(row, column)]});
      }
    } else if (wide()) {
      each(doubles_.data() + column);
    } else {
      each(bytes_.data() + column);
    }
  }

 private:
  // How many rows ahead of their use they are fetched from memory.
  static constexpr size_t kAhead = 16;

  bool wide() const { return cuts_->most_bins() > UINT8_MAX; }
  template <typename Code>
  void AppendDense(const RowMatrix& rows, std::vector<Code>* codes, Threads* threads);
  void AppendSparse(const RowMatrix& rows);

  const CutPoints* cuts_;
  const bool sparse_;
  const size_t columns_;
  size_t rows_ = 0;
  std::vector<uint8_t> bytes_;     // rows x columns
  std::vector<uint16_t> doubles_;  // the same of more bins
  std::vector<uint64_t> ends_;     // sparse: of each row's entries
  std::vector<uint32_t> entries_;  // sparse: places among the bins of all columns, ascending
};

}  // namespace sluice::models::histogram
