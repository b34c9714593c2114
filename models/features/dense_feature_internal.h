#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/row_batch.h"
#include "base/status.h"
#include "models/features/feature_transform.h"
#include "models/features/tensor_cell_internal.h"
#include "models/features/time_cell.h"

namespace sluice::models {

class Feature;
class InputColumn;

// A NUMERIC or TENSOR feature: converts one input column to `width()` floats per row. Immutable.
class DenseFeature {
 public:
  static Result<DenseFeature> Make(const Feature& feature, const InputColumn& column,
                                   FeatureTransform::Target target);

  size_t input() const { return input_; }
  size_t width() const { return values_ + (indicator_ ? 1 : 0); }
  // Writes row r at out + r x stride. `learning`: the batch has labels. Counts in `odd`.
  Status Apply(const RowBatch::Column& column, size_t rows, bool learning, float* out,
               size_t stride, OddCells* odd) const;

 private:
  float Scaled(double value) const;
  // Of an integer that a double may not hold exactly.
  float ScaledInteger(int64_t value) const;
  // The feature's measure of a time; NaN if the cell is not a time.
  double TimeValue(const RowBatch::Column& column, size_t row) const;
  Status ApplyNumbers(const RowBatch::Column& column, size_t rows, float* out, size_t stride) const;
  // Cells that are not all numbers: read each by `read`, or write it as missing.
  template <typename Read>
  Status ApplyCells(const RowBatch::Column& column, size_t rows, bool learning, float* out,
                    size_t stride, OddCells* odd, Read read) const;
  Status ReadTime(const RowBatch::Column& column, size_t row, float* out) const;
  Status ReadText(const RowBatch::Column& column, size_t row, float* out) const;
  template <typename Read>
  void Fill(const RowBatch::Column& column, size_t rows, float* out, size_t stride,
            Read read) const;
  Status ReadTensor(std::string_view cell, float* out) const;
  Status ReadElements(std::string_view cell, float* out) const;
  Status PutAt(std::string_view index_text, double value, std::string_view cell, float* out) const;
  void WriteMissing(float* out) const;

  std::string column_;
  size_t input_ = 0;
  bool tensor_ = false;
  bool trees_ = false;
  bool indicator_ = false;
  bool logarithm_ = false;
  bool timestamp_ = false;  // texts may be timestamps
  bool time_ = false;       // a measure of a time
  TimeFormat time_format_ = TimeFormat::kIso;
  TimeMeasure time_measure_ = TimeMeasure::kMicros;
  bool bounded_ = false;  // its values lie between these
  double lowest_ = 0;
  double highest_ = 0;
  std::string unit_;    // of numbers in texts
  char thousands_ = 0;  // separator of their thousands; 0: plain numbers
  bool flag_ = false;   // texts may be "t", "true" ...
  bool odd_is_missing_ = false;
  std::optional<int64_t> whole_offset_;  // offset_, if integers are centred exactly
  double offset_ = 0;
  double scale_ = 1;
  size_t values_ = 1;  // floats without the indicator
  float absent_ = 0;   // value of an index that a sparse cell lacks
  CellLayout layout_;
};

}  // namespace sluice::models
