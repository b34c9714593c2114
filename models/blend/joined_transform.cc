#include "models/blend/joined_transform.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice::models {

JoinedTransform::JoinedTransform(std::vector<const FeatureTransform*> members)
    : members_(std::move(members)) {
  for (const FeatureTransform* member : members_) {
    dense_begin_.push_back(dense_width_);
    slot_begin_.push_back(slots_.size());
    for (DenseColumn column : member->dense_columns()) {
      column.offset += dense_width_;
      dense_columns_.push_back(column);
    }
    dense_width_ += member->dense_width();
    slots_.insert(slots_.end(), member->slots().begin(), member->slots().end());
  }
}

std::vector<std::string> JoinedTransform::ColumnNames(bool with_label) const {
  return members_.front()->ColumnNames(with_label);
}

Status JoinedTransform::Apply(const RowBatch& batch, bool with_label, FeatureBatch* out) const {
  FeatureBatch one;
  out->rows = batch.rows;
  out->dense_width = dense_width_;
  out->dense.resize(batch.rows * dense_width_);
  out->slots.resize(slots_.size());
  out->odd.clear();
  out->unknown.clear();
  for (size_t i = 0; i < members_.size(); ++i) {
    RETURN_IF_ERROR(members_[i]->Apply(batch, with_label, &one));
    for (size_t r = 0; r < batch.rows; ++r) {
      std::copy_n(one.dense.data() + r * one.dense_width, one.dense_width,
                  out->dense.data() + r * dense_width_ + dense_begin_[i]);
    }
    for (size_t s = 0; s < one.slots.size(); ++s) {
      std::swap(out->slots[slot_begin_[i] + s], one.slots[s]);
    }
    for (OddCells& odd : one.odd) {
      AddOdd(std::move(odd), &out->odd);
    }
    for (OddCells& unknown : one.unknown) {
      AddOdd(std::move(unknown), &out->unknown);
    }
    if (i == 0) {
      std::swap(out->labels, one.labels);
      std::swap(out->label_numbers, one.label_numbers);
      std::swap(out->weights, one.weights);
      std::swap(out->groups, one.groups);
      std::swap(out->offsets, one.offsets);
    }
  }
  return OkStatus();
}

void JoinedTransform::Part(const FeatureBatch& rows, size_t i, FeatureBatch* part) const {
  const size_t width = members_[i]->dense_width();
  part->rows = rows.rows;
  part->dense_width = width;
  part->dense.resize(rows.rows * width);
  for (size_t r = 0; r < rows.rows; ++r) {
    std::copy_n(rows.dense.data() + r * rows.dense_width + dense_begin_[i], width,
                part->dense.data() + r * width);
  }
  const auto first = rows.slots.begin() + static_cast<std::ptrdiff_t>(slot_begin_[i]);
  part->slots.assign(first, first + static_cast<std::ptrdiff_t>(members_[i]->slots().size()));
  part->labels.clear();
  part->label_numbers.clear();
  part->weights.clear();
  part->groups.clear();
  part->offsets = rows.offsets;
}

}  // namespace sluice::models
