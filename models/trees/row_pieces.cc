#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "models/trees/gradient_boosting_internal.h"

namespace sluice::models {
namespace {

// Each piece runs several parallel loops, whose threads wait for each other, so that a piece should
// be large; but it is in memory besides the packed rows, so that one of many columns has fewer
// rows.
constexpr size_t kRowsPerPiece = 1 << 16;
constexpr size_t kNumbersPerPiece = 1 << 21;
constexpr size_t kAllRows = std::numeric_limits<size_t>::max();

// What libxgboost holds at least while it trains, when the packed rows are gone: bins by row and by
// column; and per row its place, label, prediction, gradient and positions in the tree. What is
// trained here takes less.
constexpr size_t kTrainingBytesPerNumber = 2;
constexpr size_t kTrainingBytesPerRow = 48;

// Appends the labels on the scale on which they are learnt.
void AppendLabels(const FeatureBatch& batch, const BoostingParameters& parameters,
                  std::vector<float>* labels) {
  if (parameters.learns_scaled || batch.label_numbers.empty()) {
    labels->insert(labels->end(), batch.labels.begin(), batch.labels.end());
    return;
  }
  for (const double label : batch.label_numbers) {
    labels->push_back(static_cast<float>(label));
  }
}

}  // namespace

RowPieces::RowPieces(const GradientBoosting::BatchSource& source, const ColumnLayout& layout,
                     const BoostingParameters& parameters, std::stop_token stop)
    : source_(source),
      parameters_(parameters),
      stop_(std::move(stop)),
      matrix_(&layout),
      groups_(parameters.group_column),
      keeps_(source.most_kept > 0) {}

Status RowPieces::RequireRows(std::string_view what) {
  ASSIGN_OR_RETURN(first_, source_.next());
  return first_->rows > 0 ? OkStatus()
                          : InvalidArgument(fmt::format("no rows {}: the select is empty", what));
}

void RowPieces::Restart() {
  ended_ = false;
  must_rewind_ = must_rewind_ || reading_;
  pass_ += reading_ ? 1 : 0;
  reading_ = false;
  unpacked_ = 0;
}

Result<const FeatureBatch*> RowPieces::NextBatch() {
  if (stop_.stop_requested()) {
    return Cancelled("the training was cancelled");
  }
  if (first_ != nullptr) {
    reading_ = true;
    return std::exchange(first_, nullptr);
  }
  if (must_rewind_) {
    must_rewind_ = false;
    RETURN_IF_ERROR(source_.rewind());
  }
  reading_ = true;
  return source_.next();
}

Status RowPieces::Note(const FeatureBatch& batch) {
  if (batch.labels.size() != batch.rows) {
    return InvalidArgument(
               fmt::format("label '{}' must be one number or class per row", parameters_.label))
        .Hint("trees have no vector labels: train one model per number");
  }
  return parameters_.ranking && pass_ == 0 ? groups_.Add(batch) : OkStatus();
}

Status RowPieces::Collect(size_t rows, size_t numbers) {
  labels_.clear();
  weights_.clear();
  bool fresh = true;
  while (!ended_ && (fresh || (matrix_.rows() < rows && matrix_.numbers() < numbers))) {
    ASSIGN_OR_RETURN(const FeatureBatch* batch, NextBatch());
    if (batch->rows == 0) {
      ended_ = true;
      break;
    }
    RETURN_IF_ERROR(Note(*batch));
    RETURN_IF_ERROR(fresh ? matrix_.Fill(*batch) : matrix_.Append(*batch));
    fresh = false;
    AppendLabels(*batch, parameters_, &labels_);
    weights_.insert(weights_.end(), batch->weights.begin(), batch->weights.end());
  }
  return OkStatus();
}

Status RowPieces::ReadAll() {
  RETURN_IF_ERROR(Collect(kAllRows, kAllRows));
  GiveBack(matrix_.numbers() * sizeof(float));  // what the matrix has grown out of
  return OkStatus();
}

RowPieces::Piece RowPieces::Packed() {
  packer_.Add(labels_.data(), labels_.size());
  packer_.Add(weights_.data(), weights_.size());
  return {matrix_.rows(), !weights_.empty(), packer_.Take()};
}

void RowPieces::Keep() {
  matrix_.Pack(&packer_);
  kept_.push_back(Packed());
  kept_bytes_ += kept_.back().bytes.size();
  training_bytes_ +=
      kTrainingBytesPerNumber * matrix_.numbers() + kTrainingBytesPerRow * matrix_.rows();
  if (kept_bytes_ > std::max(source_.most_kept, training_bytes_)) {
    keeps_ = false;
    kept_ = {};
  }
}

void RowPieces::Unpack(const Piece& piece) {
  NumberReader reader(piece.bytes);
  matrix_.Unpack(piece.rows, &reader);
  labels_.resize(piece.rows);
  reader.Read(labels_.data(), labels_.size());
  weights_.resize(piece.weighed ? piece.rows : 0);
  reader.Read(weights_.data(), weights_.size());
}

Result<bool> RowPieces::Next(Left left) {
  if (!keeps_ || pass_ == 0) {
    RETURN_IF_ERROR(Collect(kRowsPerPiece, kNumbersPerPiece));
    if (keeps_ && !labels_.empty() && left == Left::kRows) {
      Keep();
    }
    return !labels_.empty();
  }
  if (stop_.stop_requested()) {
    return Cancelled("the training was cancelled");
  }
  reading_ = true;
  if (unpacked_ == kept_.size()) {
    labels_.clear();
    return false;
  }
  Piece& piece = kept_[unpacked_++];
  Unpack(piece);
  if (left == Left::kNothing) {
    piece = {};
    GiveBack(kept_bytes_);
  } else if (left == Left::kPresence) {
    matrix_.PackPresence(&packer_);
    piece = Packed();
    GiveBack(kept_bytes_);
  }
  return true;
}

void RowPieces::Forget() {
  kept_ = {};
  GiveBack(kept_bytes_);
}

// Blocks of several megabytes would stay with the allocator, which cannot use them for larger ones.
void RowPieces::GiveBack(size_t rows_bytes) {
  constexpr size_t kWorthIt = 8U << 20U;
  if (rows_bytes > kWorthIt) {
    malloc_trim(0);
  }
}

}  // namespace sluice::models
