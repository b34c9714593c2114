#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::models {

class FeaturePlan;

// The ids of one categorical feature for every row of a batch.
struct IdSlot {
  std::vector<uint32_t> ids;
  std::vector<uint32_t> ends;  // empty: exactly one id per row; else ids of row r are
                               // [ends[r-1], ends[r]) with ends[-1] = 0
  std::vector<float> weights;  // empty: every id weighs 1; else one per id
  size_t Begin(size_t row) const { return ends.empty() ? row : (row == 0 ? 0 : ends[row - 1]); }
  size_t End(size_t row) const { return ends.empty() ? row + 1 : ends[row]; }
};

// Cells of one column that are unlike those of the training.
struct OddCells {
  std::string column;
  size_t cells = 0;
  std::string first;  // the text of one of them
};

// Several features, and members of a blend, may read one column: the first of them counts.
void AddOdd(OddCells odd, std::vector<OddCells>* all);

// Rows as models receive them: plain numbers, the same for training and prediction.
struct FeatureBatch {
  size_t rows = 0;
  size_t dense_width = 0;
  std::vector<float> dense;   // rows x dense_width, row-major; standardised, never NaN
                              // (raw, NaN = missing, from a transform made for trees)
  std::vector<IdSlot> slots;  // one per CATEGORY feature, in the plan's order
  std::vector<float> labels;  // rows x label width: class id, number (scaled), or vector; empty
                              // when the batch has no label
  // Of a label of numbers: the numbers themselves, as they are in the table; rows x label width.
  // Empty for classes, and where they are only learnt from.
  std::vector<double> label_numbers;
  std::vector<float> weights;   // empty: every row weighs 1
  std::vector<int64_t> groups;  // ranking: query id per row; empty otherwise
  std::vector<float> offsets;   // of an exposure: log(exposure / unit) per row; empty otherwise
  // Cells that are read as missing values, and values of categories that the model does not know:
  // at most one of each for a column; not kept by Slice and Append.
  std::vector<OddCells> odd;
  std::vector<OddCells> unknown;
  std::vector<IdSlot> scratch;  // of FeatureTransform::Apply, kept for reuse

  // Rows [begin, end) as a separate batch.
  FeatureBatch Slice(size_t begin, size_t end) const;
  void Append(const FeatureBatch& other);
  // rows x label width: class ids, or the numbers in the label's own unit. Precondition for a
  // label of numbers: label_numbers.
  std::vector<double> OwnLabels() const;
  // Adds the rows' offsets, if any, to rows x width outputs of a network.
  void AddOffsets(size_t width, float* outputs) const;
  void Clear();
  size_t Bytes() const;
};

// Whether training met a class of the label that the sample did not show
// (LabelPlan::classes_of_sample).
bool IsUnseenClass(const Status& status);

// The place of a dense feature of the plan in FeatureBatch::dense.
struct DenseColumn {
  size_t feature = 0;  // position in FeaturePlan.features
  size_t offset = 0;
  size_t width = 1;  // includes the NULL indicator, if any, as the last one
  bool in_wide = true;
  bool in_deep = true;
};

// The place of a categorical feature's ids, and the size of their table.
struct SlotColumn {
  size_t feature = 0;
  uint32_t buckets = 0;
  bool embedding = false;  // false: indicator
  uint32_t dimension = 0;
  std::string combiner;
  std::string initializer;
  bool in_wide = true;
  bool in_deep = true;
};

// Applies a FeaturePlan to rows, with the same code for training and prediction. Immutable after
// Make; Apply is thread-safe (scratch space is in `out`).
class FeatureTransform {
 public:
  enum class Target {
    kNetwork,  // standardise, NULL -> 0 and indicator
    kTrees,    // raw numbers, NULL -> NaN
  };

  // Fails if the plan is inconsistent, which a stored one may be; never crashes on one.
  static Result<std::unique_ptr<FeatureTransform>> Make(const FeaturePlan& plan, Target target);
  virtual ~FeatureTransform() = default;

  // The columns that Apply expects in its RowBatch, in order: the plan's inputs, then the exposure,
  // then those of the label, weight and group columns that are needed. `with_label` false:
  // prediction.
  virtual std::vector<std::string> ColumnNames(bool with_label) const = 0;

  // `batch` has exactly ColumnNames(with_label), in that order, with any numeric type where the
  // plan says numeric (a text cell that should be a number is an error that names column and row).
  // NaN and infinity in a number count as NULL; a label that is NULL, NaN or not one of the classes
  // is an error that names the column and the value. `out` is overwritten.
  virtual Status Apply(const RowBatch& batch, bool with_label, FeatureBatch* out) const = 0;

  virtual const std::vector<DenseColumn>& dense_columns() const = 0;
  virtual const std::vector<SlotColumn>& slots() const = 0;
  virtual size_t dense_width() const = 0;
  virtual size_t label_width() const = 0;
};

// The hash for HASH and CROSS: 64 bits, the same on every machine. Source: wyhash-style mixing.
uint64_t HashText(std::string_view text);
uint64_t HashInteger(uint64_t value);

}  // namespace sluice::models
