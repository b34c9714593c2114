#include "models/trees/histogram/binned_rows.h"

#include <algorithm>

namespace sluice::models::histogram {
namespace {

constexpr size_t kRowsPerTask = 4096;
// How many rows ahead of their use they are fetched from memory.
constexpr size_t kAhead = 16;

template <typename Code>
void AddDense(std::span<const uint32_t> rows, const uint64_t* words, const Code* codes,
              std::span<const uint32_t> first, GradientSum* sums) {
  const size_t columns = first.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + kAhead < rows.size()) {
      const size_t later = rows[i + kAhead];
      __builtin_prefetch(words + later);
      __builtin_prefetch(codes + later * columns);
    }
    const Code* row = codes + rows[i] * columns;
    const GradientSum sum = GradientScale::Unpack(words[rows[i]]);
    for (size_t c = 0; c < columns; ++c) {
      sums[first[c] + row[c]].Add(sum);
    }
  }
}

template <typename LeftOf>
size_t PartBy(std::span<const uint32_t> rows, LeftOf left_of, uint32_t* to) {
  std::vector<uint32_t> others(rows.size());
  size_t left = 0, right = 0;
  for (const uint32_t row : rows) {
    const bool is_left = left_of(row);
    to[left] = row;
    others[right] = row;
    left += is_left ? 1 : 0;
    right += is_left ? 0 : 1;
  }
  std::copy_n(others.begin(), right, to + left);
  return left;
}

}  // namespace

BinnedRows::BinnedRows(const CutPoints* cuts, bool sparse)
    : cuts_(cuts), sparse_(sparse), columns_(cuts->columns()) {}

template <typename Code>
void BinnedRows::AppendDense(const RowMatrix& rows, std::vector<Code>* codes, Threads* threads) {
  const size_t before = codes->size();
  codes->resize(before + rows.rows() * columns_);
  const float* values = rows.values().data();
  Code* to = codes->data() + before;
  threads->RunPieces(rows.rows(), kRowsPerTask, [&](size_t begin, size_t end, size_t) {
    for (size_t r = begin; r < end; ++r) {
      for (size_t c = 0; c < columns_; ++c) {
        const size_t i = r * columns_ + c;
        to[i] = static_cast<Code>(cuts_->BinOf(c, values[i]));
      }
    }
  });
}

void BinnedRows::AppendSparse(const RowMatrix& rows) {
  for (size_t r = 0; r < rows.rows(); ++r) {
    for (uint64_t i = rows.row_ends()[r]; i < rows.row_ends()[r + 1]; ++i) {
      const uint32_t column = rows.columns()[i];
      entries_.push_back(cuts_->first(column) + cuts_->BinOf(column, rows.values()[i]));
    }
    ends_.push_back(entries_.size());
  }
}

void BinnedRows::Append(const RowMatrix& rows, Threads* threads) {
  if (sparse_) {
    AppendSparse(rows);
  } else if (wide()) {
    AppendDense(rows, &doubles_, threads);
  } else {
    AppendDense(rows, &bytes_, threads);
  }
  rows_ += rows.rows();
}

uint32_t BinnedRows::BinOf(size_t row, size_t column) const {
  if (!sparse_) {
    const size_t i = row * columns_ + column;
    return wide() ? doubles_[i] : bytes_[i];
  }
  const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(row == 0 ? 0 : ends_[row - 1]);
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(ends_[row]);
  const uint32_t first = cuts_->first(column), bins = cuts_->bins(column);
  const auto found = std::lower_bound(begin, end, first);
  return found != end && *found < first + bins ? *found - first : bins;
}

void BinnedRows::AddTo(std::span<const uint32_t> rows, const uint64_t* words,
                       Histogram* sums) const {
  if (!sparse_) {
    wide() ? AddDense(rows, words, doubles_.data(), cuts_->first(), sums->data())
           : AddDense(rows, words, bytes_.data(), cuts_->first(), sums->data());
    return;
  }
  for (const uint32_t row : rows) {
    const GradientSum sum = GradientScale::Unpack(words[row]);
    for (uint64_t i = row == 0 ? 0 : ends_[row - 1]; i < ends_[row]; ++i) {
      (*sums)[entries_[i]].Add(sum);
    }
  }
}

size_t BinnedRows::Part(std::span<const uint32_t> rows, size_t column,
                        const std::vector<uint8_t>& left, uint32_t* to) const {
  if (sparse_) {
    return PartBy(rows, [&](uint32_t row) { return left[BinOf(row, column)] != 0; }, to);
  }
  if (wide()) {
    const uint16_t* codes = doubles_.data() + column;
    return PartBy(rows, [&](uint32_t row) { return left[codes[row * columns_]] != 0; }, to);
  }
  const uint8_t* codes = bytes_.data() + column;
  return PartBy(rows, [&](uint32_t row) { return left[codes[row * columns_]] != 0; }, to);
}

size_t BinnedRows::bytes() const {
  return bytes_.capacity() + doubles_.capacity() * sizeof(uint16_t) +
         ends_.capacity() * sizeof(uint64_t) + entries_.capacity() * sizeof(uint32_t);
}

}  // namespace sluice::models::histogram
