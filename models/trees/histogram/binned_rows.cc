#include "models/trees/histogram/binned_rows.h"

#include <algorithm>

#include "models/trees/histogram/number_text.h"

namespace sluice::models::histogram {
namespace {

constexpr size_t kRowsPerTask = 4096;

// Both numbers of a GradientSum in one register.
using Pair = int64_t __attribute__((vector_size(16), may_alias));

template <typename Code>
void AddDense(std::span<const uint32_t> rows, const uint64_t* words, const Code* codes,
              std::span<const uint32_t> first, size_t ahead, GradientSum* sums) {
  const size_t columns = first.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i + ahead < rows.size()) {
      const size_t later = rows[i + ahead];
      __builtin_prefetch(words + later);
      __builtin_prefetch(codes + later * columns);
    }
    const Code* row = codes + rows[i] * columns;
    const GradientSum sum = GradientScale::Unpack(words[rows[i]]);
    const Pair added = {sum.gradient, sum.hessian};
    for (size_t c = 0; c < columns; ++c) {
      *reinterpret_cast<Pair*>(sums + first[c] + row[c]) += added;
    }
  }
}

}  // namespace

BinnedRows::BinnedRows(const CutPoints* cuts, bool sparse)
    : cuts_(cuts), sparse_(sparse), columns_(cuts->columns()) {}

void BinnedRows::Reserve(size_t rows) {
  if (sparse_) {
    ends_.reserve(rows);
  } else if (wide()) {
    doubles_.reserve(rows * columns_);
  } else {
    bytes_.reserve(rows * columns_);
  }
}

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

void BinnedRows::Write(std::string* bytes) const {
  WriteNumber(uint64_t{rows_}, bytes);
  WriteNumbers(bytes_, bytes);
  WriteNumbers(doubles_, bytes);
  WriteNumbers(ends_, bytes);
  WriteNumbers(entries_, bytes);
}

bool BinnedRows::AppendWritten(std::string_view bytes) {
  uint64_t rows = 0;
  const uint64_t entries_before = entries_.size();
  const size_t ends_before = ends_.size();
  if (!ReadNumber(&bytes, &rows) || !AppendNumbers(&bytes, &bytes_) ||
      !AppendNumbers(&bytes, &doubles_) || !AppendNumbers(&bytes, &ends_) ||
      !AppendNumbers(&bytes, &entries_)) {
    return false;
  }
  const size_t codes = wide() ? doubles_.size() : bytes_.size();
  const size_t read = sparse_ ? ends_.size() : codes / std::max<size_t>(1, columns_);
  if (read < rows_ || read - rows_ != rows || (!sparse_ && codes != read * columns_)) {
    return false;
  }
  for (size_t i = ends_before; i < ends_.size(); ++i) {
    ends_[i] += entries_before;
    if (ends_[i] > entries_.size() || ends_[i] < (i == 0 ? 0 : ends_[i - 1])) {
      return false;
    }
  }
  const auto first = entries_.begin() + static_cast<std::ptrdiff_t>(entries_before);
  bool known = std::all_of(first, entries_.end(),
                           [this](uint32_t entry) { return entry < cuts_->all_bins(); });
  for (size_t i = rows_ * columns_; i < codes && known; ++i) {
    known = (wide() ? doubles_[i] : bytes_[i]) <= cuts_->bins(i % columns_);
  }
  rows_ += rows;
  return known;
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
    wide() ? AddDense(rows, words, doubles_.data(), cuts_->first(), kAhead, sums->data())
           : AddDense(rows, words, bytes_.data(), cuts_->first(), kAhead, sums->data());
    return;
  }
  for (const uint32_t row : rows) {
    const GradientSum sum = GradientScale::Unpack(words[row]);
    for (uint64_t i = row == 0 ? 0 : ends_[row - 1]; i < ends_[row]; ++i) {
      (*sums)[entries_[i]].Add(sum);
    }
  }
}

}  // namespace sluice::models::histogram
