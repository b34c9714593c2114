#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "models/features/categorizer_internal.h"

namespace sluice::models {
namespace {

// Up to here doubles print without an exponent, as the integers that they are.
constexpr double kPlainIntegers = 9e15;

// Removes kNoId from the slot, which then records where each row's ids end.
void DropAbsent(IdSlot* slot, size_t rows) {
  uint32_t kept = 0;
  slot->ends.resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    if (slot->ids[row] != kNoId) {
      slot->ids[kept++] = slot->ids[row];
    }
    slot->ends[row] = kept;
  }
  slot->ids.resize(kept);
}

void PutId(uint32_t id, double weight, bool weighted, IdSlot* slot) {
  if (id != kNoId) {
    slot->ids.push_back(id);
    if (weighted) {
      slot->weights.push_back(static_cast<float>(weight));
    }
  }
}

}  // namespace

uint32_t CellCategorizer::OfIdentity(double value) const {
  return value >= 0 && value < value_buckets_ && value == std::floor(value)
             ? static_cast<uint32_t>(value)
             : oov_id_;
}

// A number hashes like the text that FormatValue makes of it, so a column may change between
// bigint, double and text without changing the model's ids.
uint32_t CellCategorizer::OfHash(int64_t value) const {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return OfHash(std::string_view(text, static_cast<size_t>(end - text)));
}

uint32_t CellCategorizer::OfHash(double value) const {
  if (value == std::floor(value) && std::abs(value) < kPlainIntegers) {
    return OfHash(static_cast<int64_t>(value));
  }
  char text[40];
  const auto end = fmt::format_to_n(text, sizeof(text), "{}", value).out;
  return OfHash(std::string_view(text, static_cast<size_t>(end - text)));
}

uint32_t CellCategorizer::OfFlag(bool value) const {
  const bool number = learnt_ == DataType::kInt64 || learnt_ == DataType::kDouble;
  return number ? OfHash(int64_t{value}) : OfHash(std::string_view(value ? "t" : "f"));
}

// Hashes a text that spells a value of the learnt type like that value: "1.0" as 1.
uint32_t CellCategorizer::OfHashedText(std::string_view text) const {
  if (learnt_ == DataType::kTimestamp) {
    const std::optional<int64_t> micros = ParseTimestamp(text);
    return OfHash(micros.has_value() ? std::string_view(FormatTimestamp(*micros)) : text);
  }
  if (!IsNumeric(learnt_)) {
    return OfHash(text);
  }
  const std::string_view trimmed = TrimBlanks(text);
  const std::optional<double> number = ParseCategoryNumber(trimmed);
  if (const std::optional<bool> flag = ParseFlag(trimmed)) {
    return OfFlag(*flag);
  }
  if (learnt_ == DataType::kBool && number.has_value() && (*number == 0 || *number == 1)) {
    return OfFlag(*number == 1);
  }
  return number.has_value() && std::abs(*number) < kPlainIntegers ? OfHash(*number)
                                                                  : OfHash(trimmed);
}

uint32_t CellCategorizer::OfIdentityText(std::string_view text) const {
  if (const std::optional<int64_t> integer = ParseInteger(text)) {
    return OfIdentity(*integer);
  }
  const std::optional<double> number =
      IsNumeric(learnt_) ? ParseCategoryNumber(TrimBlanks(text)) : std::nullopt;
  return number.has_value() ? OfIdentity(*number) : oov_id_;
}

uint32_t CellCategorizer::OfBucket(double value) const {
  return static_cast<uint32_t>(std::upper_bound(boundaries_.begin(), boundaries_.end(), value) -
                               boundaries_.begin());
}

template <typename Find>
void CellCategorizer::Fill(const RowBatch::Column& column, size_t rows, uint32_t* ids,
                           Find find) const {
  const uint8_t* null = column.null.data();
  const uint32_t null_id = null_id_;
  for (size_t row = 0; row < rows; ++row) {
    ids[row] = null[row] != 0 ? null_id : find(row);
  }
}

void CellCategorizer::ApplyVocabulary(const RowBatch::Column& column, size_t rows,
                                      uint32_t* ids) const {
  if (IsText(column)) {
    Fill(column, rows, ids, [this, texts = column.texts.data()](size_t row) {
      return IsMissing(texts[row]) ? null_id_ : Known(vocabulary_.FindTextCell(texts[row]));
    });
  } else if (column.type == DataType::kInt64) {
    Fill(column, rows, ids, [this, values = column.int64s.data()](size_t row) {
      return Known(vocabulary_.FindInteger(values[row]));
    });
  } else if (column.type == DataType::kDouble) {
    Fill(column, rows, ids, [this, values = column.doubles.data()](size_t row) {
      return std::isfinite(values[row]) ? Known(vocabulary_.FindDouble(values[row])) : null_id_;
    });
  } else {
    Fill(column, rows, ids,
         [this, &column](size_t row) { return Known(vocabulary_.FindCell(column, row)); });
  }
}

void CellCategorizer::ApplyIdentity(const RowBatch::Column& column, size_t rows,
                                    uint32_t* ids) const {
  if (IsText(column)) {
    Fill(column, rows, ids, [this, texts = column.texts.data()](size_t row) {
      return IsMissing(texts[row]) ? null_id_ : OfIdentityText(texts[row]);
    });
  } else if (column.type == DataType::kDouble) {
    Fill(column, rows, ids, [this, values = column.doubles.data()](size_t row) {
      return std::isfinite(values[row]) ? OfIdentity(values[row]) : null_id_;
    });
  } else {
    Fill(column, rows, ids,
         [this, values = column.int64s.data()](size_t row) { return OfIdentity(values[row]); });
  }
}

void CellCategorizer::ApplyHash(const RowBatch::Column& column, size_t rows, uint32_t* ids) const {
  if (learnt_ == DataType::kBool && IsNumeric(column.type)) {
    Fill(column, rows, ids,
         [this, &column](size_t row) { return OfFlag(column.NumberAt(row) != 0); });
    return;
  }
  switch (column.type) {
    case DataType::kText:
    case DataType::kBytes:
      Fill(column, rows, ids, [this, texts = column.texts.data()](size_t row) {
        return IsMissing(texts[row]) ? null_id_ : OfHashedText(texts[row]);
      });
      return;
    case DataType::kDouble:
      Fill(column, rows, ids, [this, values = column.doubles.data()](size_t row) {
        return std::isfinite(values[row]) ? OfHash(values[row]) : null_id_;
      });
      return;
    case DataType::kInt64:
      Fill(column, rows, ids,
           [this, values = column.int64s.data()](size_t row) { return OfHash(values[row]); });
      return;
    case DataType::kBool:
      Fill(column, rows, ids,
           [this, values = column.int64s.data()](size_t row) { return OfFlag(values[row] != 0); });
      return;
    case DataType::kTimestamp:
      Fill(column, rows, ids, [this, values = column.int64s.data()](size_t row) {
        return OfHash(std::string_view(FormatTimestamp(values[row])));
      });
      return;
  }
}

Status CellCategorizer::ApplyBucket(const RowBatch::Column& column, size_t rows,
                                    uint32_t* ids) const {
  if (!IsText(column)) {
    Fill(column, rows, ids, [this, &column](size_t row) {
      const double value = column.NumberAt(row);
      return std::isfinite(value) ? OfBucket(value) : null_id_;
    });
    return OkStatus();
  }
  for (size_t row = 0; row < rows; ++row) {
    ids[row] = null_id_;
    if (column.null[row] != 0 || TrimBlanks(column.texts[row]).empty()) {
      continue;
    }
    const std::optional<double> value = ParseNumber(column.texts[row]);
    if (!value.has_value() && (odd_is_missing_ || IsMissingWord(column.texts[row]))) {
      continue;
    }
    if (!value.has_value()) {
      return BadCell(column_, column.texts[row], "BUCKET expects a number, found text");
    }
    if (!std::isnan(*value)) {
      ids[row] = OfBucket(*value);
    }
  }
  return OkStatus();
}

Status CellCategorizer::ApplyTimePart(const RowBatch::Column& column, size_t rows,
                                      uint32_t* ids) const {
  if (column.type == DataType::kTimestamp) {
    Fill(column, rows, ids,
         [this, values = column.int64s.data()](size_t row) { return OfTime(values[row]); });
    return OkStatus();
  }
  const bool of_numbers = time_format_ == TimeFormat::kSeconds ||
                          time_format_ == TimeFormat::kMillis ||
                          time_format_ == TimeFormat::kCompact;
  if (IsNumeric(column.type) && of_numbers) {
    Fill(column, rows, ids, [this, &column](size_t row) {
      const std::optional<int64_t> micros = TimeOfNumber(column.NumberAt(row), time_format_);
      return micros ? OfTime(*micros) : null_id_;
    });
    return OkStatus();
  }
  if (!IsText(column)) {
    return InvalidArgument(fmt::format("column '{}' holds {}, but the model needs a timestamp",
                                       column_, DataTypeName(column.type)));
  }
  for (size_t row = 0; row < rows; ++row) {
    ids[row] = null_id_;
    if (column.null[row] != 0 || TrimBlanks(column.texts[row]).empty()) {
      continue;
    }
    std::optional<int64_t> micros = ParseTime(column.texts[row], time_format_);
    if (!micros.has_value()) {
      micros = ParseTimestamp(column.texts[row]);
    }
    if (!micros.has_value() && (odd_is_missing_ || IsMissingWord(column.texts[row]))) {
      continue;
    }
    if (!micros.has_value()) {
      return BadCell(
          column_, column.texts[row],
          fmt::format("expected a timestamp such as {}", TimeFormatExample(time_format_)));
    }
    ids[row] = OfTime(*micros);
  }
  return OkStatus();
}

Status CellCategorizer::Apply(const RowBatch::Column& column, size_t rows, IdSlot* slot) const {
  slot->ids.resize(rows);
  slot->ends.clear();
  slot->weights.clear();
  uint32_t* ids = slot->ids.data();
  switch (kind_) {
    case Kind::kVocabulary:
      ApplyVocabulary(column, rows, ids);
      break;
    case Kind::kIdentity:
      ApplyIdentity(column, rows, ids);
      break;
    case Kind::kHash:
      ApplyHash(column, rows, ids);
      break;
    case Kind::kBucket:
      RETURN_IF_ERROR(ApplyBucket(column, rows, ids));
      break;
    case Kind::kTimePart:
      RETURN_IF_ERROR(ApplyTimePart(column, rows, ids));
      break;
  }
  const bool may_be_absent = null_id_ == kNoId || oov_id_ == kNoId;
  if (may_be_absent && std::find(ids, ids + rows, kNoId) != ids + rows) {
    DropAbsent(slot, rows);
  }
  return OkStatus();
}

bool CellCategorizer::ElementId(std::string_view element, uint32_t* id) const {
  switch (kind_) {
    case Kind::kVocabulary:
      *id = Known(vocabulary_.FindText(element));
      return true;
    case Kind::kHash:
      *id = OfHash(element);
      return true;
    case Kind::kIdentity: {
      const std::optional<int64_t> value = ParseInteger(element);
      *id = OfIdentity(value.value_or(-1));
      return value.has_value();
    }
    case Kind::kBucket: {
      const std::optional<double> value = ParseNumber(element);
      *id = value.has_value() && !std::isnan(*value) ? OfBucket(*value) : null_id_;
      return value.has_value();
    }
    case Kind::kTimePart: {
      const std::optional<int64_t> micros = ParseTimestamp(element);
      *id = micros.has_value() ? OfTime(*micros) : null_id_;
      return micros.has_value();
    }
  }
  return false;
}

Status CellCategorizer::AddElements(std::string_view cell, const CellLayout& layout, bool weighted,
                                    IdSlot* slot) const {
  CellCursor cursor(cell, layout);
  std::string_view element;
  while (cursor.Next(&element)) {
    std::string_view key = element;
    std::string_view value;
    double weight = 1;
    if (layout.key_value && SplitPair(element, layout, &key, &value)) {
      const std::optional<double> number = ParseNumber(value);
      if (!number.has_value() || !std::isfinite(*number)) {
        return BadCell(column_, cell,
                       fmt::format("expected a weight after '{}', found '{}'",
                                   layout.key_value_delimiter, value));
      }
      weight = *number;
    }
    if (key.empty() && kind_ == Kind::kVocabulary) {
      continue;  // "red;;blue" names two
    }
    uint32_t id = kNoId;
    if (key.empty() || !ElementId(key, &id)) {
      return BadCell(column_, cell,
                     fmt::format("expected {}, found '{}'",
                                 kind_ == Kind::kBucket ? "numbers" : "integer ids", element));
    }
    PutId(id, weight, weighted, slot);
  }
  return OkStatus();
}

Status CellCategorizer::ApplyTensor(const RowBatch::Column& column, size_t rows,
                                    const CellLayout& layout, bool weighted, IdSlot* slot) const {
  if (!IsText(column)) {
    return Apply(column, rows, slot);  // one number is a tensor of one element
  }
  slot->ids.clear();
  slot->ends.resize(rows);
  slot->weights.clear();
  for (size_t row = 0; row < rows; ++row) {
    const size_t begin = slot->ids.size();
    bool missing = column.null[row] != 0;
    if (!missing) {
      const Status added = AddElements(column.texts[row], layout, weighted, slot);
      if (!added.ok() && !odd_is_missing_) {
        return added;
      }
      missing = !added.ok();
    }
    if (missing) {
      slot->ids.resize(begin);
      slot->weights.resize(weighted ? begin : 0);
      PutId(null_id_, 1, weighted, slot);
    }
    slot->ends[row] = static_cast<uint32_t>(slot->ids.size());
  }
  return OkStatus();
}

}  // namespace sluice::models
