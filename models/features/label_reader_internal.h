#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "models/features/label_scale.h"
#include "models/features/tensor_cell_internal.h"
#include "models/features/vocabulary_internal.h"

namespace sluice::models {

struct FeatureBatch;
class LabelPlan;

// Converts the label column to floats: class ids, scaled numbers, or vectors of them. Immutable.
class LabelReader {
 public:
  static Result<LabelReader> Make(const LabelPlan& plan);

  size_t width() const { return width_; }  // 0: there is no label
  // Writes `labels` and `label_numbers`.
  Status Apply(const RowBatch::Column& column, size_t rows, FeatureBatch* out) const;

 private:
  Status ApplyClasses(const RowBatch::Column& column, size_t rows, float* labels) const;
  Status ApplyNumbers(const RowBatch::Column& column, size_t rows, FeatureBatch* out) const;
  Status ApplyVectors(const RowBatch::Column& column, size_t rows, FeatureBatch* out) const;
  Status NullLabel(bool text) const;
  Status UnknownClass(const RowBatch::Column& column, size_t row) const;

  std::string column_;
  size_t width_ = 0;
  bool classes_ = false;
  bool classes_of_sample_ = false;  // as in the plan
  bool vector_ = false;
  Vocabulary vocabulary_;
  std::vector<LabelScale> scales_;  // one per number; empty for classes
  CellLayout layout_;
};

// The weight of every row: finite, not negative, not NULL.
Status ReadWeights(const std::string& name, const RowBatch::Column& column, size_t rows,
                   std::vector<float>* weights);
// log(exposure / unit) of every row; exposures are finite and above 0, not NULL.
Status ReadExposures(const std::string& name, double unit, const RowBatch::Column& column,
                     size_t rows, std::vector<float>* offsets);
// A number per row that is equal for rows with equal group cells.
Status ReadGroups(const std::string& name, const RowBatch::Column& column, size_t rows,
                  std::vector<int64_t>* groups);

}  // namespace sluice::models
