#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "models/features/feature_transform.h"

namespace sluice::models {

class Feature;

// A CATEGORY feature over free text: the buckets of a cell's words, with weights. Immutable.
class WordFeature {
 public:
  static Result<WordFeature> Make(const Feature& feature, std::string column);

  Status Apply(const RowBatch::Column& column, size_t rows, IdSlot* slot) const;

 private:
  float WeightOf(uint32_t bucket) const;

  std::string column_;
  uint32_t longest_run_ = 1;
  uint32_t hashes_ = 0;
  int64_t null_bucket_ = -1;
  std::vector<uint32_t> common_buckets_;
  std::vector<float> common_weights_;
  float rare_weight_ = 1;
};

}  // namespace sluice::models
