#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/features/feature_transform.h"

namespace sluice::models {

// The features of several transforms, next to each other. Immutable; Apply is thread-safe.
class JoinedTransform final : public FeatureTransform {
 public:
  // `members` (at least one) outlive it, and require the same columns in the same order. Labels,
  // weights and groups come from the first.
  explicit JoinedTransform(std::vector<const FeatureTransform*> members);

  std::vector<std::string> ColumnNames(bool with_label) const override;
  Status Apply(const RowBatch& batch, bool with_label, FeatureBatch* out) const override;
  const std::vector<DenseColumn>& dense_columns() const override { return dense_columns_; }
  const std::vector<SlotColumn>& slots() const override { return slots_; }
  size_t dense_width() const override { return dense_width_; }
  size_t label_width() const override { return members_.front()->label_width(); }

  // Extracts member `i`'s part of rows from Apply. `part` is overwritten; without labels.
  void Part(const FeatureBatch& rows, size_t i, FeatureBatch* part) const;

 private:
  const std::vector<const FeatureTransform*> members_;
  std::vector<size_t> dense_begin_;  // by member
  std::vector<size_t> slot_begin_;
  std::vector<DenseColumn> dense_columns_;
  std::vector<SlotColumn> slots_;
  size_t dense_width_ = 0;
};

}  // namespace sluice::models
