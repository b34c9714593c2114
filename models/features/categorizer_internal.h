#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "models/features/cell_format.h"
#include "models/features/feature_transform.h"
#include "models/features/tensor_cell_internal.h"
#include "models/features/time_cell.h"
#include "models/features/time_part_internal.h"
#include "models/features/vocabulary_internal.h"

namespace sluice::models {

class Categorizer;
class InputColumn;

// Converts one column to ids, with any kind of Categorizer except CROSS. Immutable.
class CellCategorizer {
 public:
  // `column`: as the model was trained; its cells may have another type now.
  static Result<CellCategorizer> Make(const Categorizer& spec, const InputColumn& column);

  uint32_t buckets() const { return buckets_; }
  // Of values that have none of their own; kNoId: there is none.
  uint32_t unknown_id() const { return oov_id_; }
  // One id per row, from the whole cell; no id if NULL or an unseen value has no bucket.
  Status Apply(const RowBatch::Column& column, size_t rows, IdSlot* slot) const;
  // The ids of all elements of a text cell that holds a tensor; `weighted`: with their weights.
  Status ApplyTensor(const RowBatch::Column& column, size_t rows, const CellLayout& layout,
                     bool weighted, IdSlot* slot) const;

 private:
  Status AddElements(std::string_view cell, const CellLayout& layout, bool weighted,
                     IdSlot* slot) const;
  enum class Kind { kVocabulary, kIdentity, kHash, kBucket, kTimePart };

  template <typename Find>
  void Fill(const RowBatch::Column& column, size_t rows, uint32_t* ids, Find find) const;
  void ApplyVocabulary(const RowBatch::Column& column, size_t rows, uint32_t* ids) const;
  void ApplyIdentity(const RowBatch::Column& column, size_t rows, uint32_t* ids) const;
  void ApplyHash(const RowBatch::Column& column, size_t rows, uint32_t* ids) const;
  Status ApplyBucket(const RowBatch::Column& column, size_t rows, uint32_t* ids) const;
  Status ApplyTimePart(const RowBatch::Column& column, size_t rows, uint32_t* ids) const;

  uint32_t Known(uint32_t id) const { return id == kNoId ? oov_id_ : id; }
  uint32_t OfIdentity(int64_t value) const {
    return static_cast<uint64_t>(value) < value_buckets_ ? static_cast<uint32_t>(value) : oov_id_;
  }
  uint32_t OfIdentity(double value) const;
  uint32_t OfHash(std::string_view text) const {
    return static_cast<uint32_t>(HashTextInline(text) % value_buckets_);
  }
  uint32_t OfHash(int64_t value) const;
  uint32_t OfHash(double value) const;
  uint32_t OfFlag(bool value) const;
  uint32_t OfHashedText(std::string_view text) const;
  uint32_t OfIdentityText(std::string_view text) const;
  uint32_t OfBucket(double value) const;
  uint32_t OfTime(int64_t micros) const { return PartOfTime(time_part_, micros).value_or(oov_id_); }
  // A blank cell of a numeric column is how file imports store a missing value.
  bool IsMissing(std::string_view text) const {
    return IsNumeric(learnt_) && TrimBlanks(text).empty();
  }
  // The id of one element; false if it should be an index or a number and is not.
  bool ElementId(std::string_view element, uint32_t* id) const;

  std::string column_;
  DataType learnt_ = DataType::kText;
  bool odd_is_missing_ = false;
  Kind kind_ = Kind::kVocabulary;
  uint32_t buckets_ = 0;
  uint32_t value_buckets_ = 0;  // without the NULL and unseen buckets at the end
  uint32_t null_id_ = kNoId;
  uint32_t oov_id_ = kNoId;
  Vocabulary vocabulary_;
  std::vector<double> boundaries_;
  TimePart time_part_ = TimePart::kHour;
  TimeFormat time_format_ = TimeFormat::kIso;
};

}  // namespace sluice::models
