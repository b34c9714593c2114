#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/bad_rows.h"
#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/timestamp_text.h"
#include "catalog/sqlite/sqlite_cell_internal.h"
#include "catalog/sqlite/sqlite_types_internal.h"

namespace sluice::catalog {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

template <typename Number>
std::optional<Number> ParseNumber(std::string_view text) {
  text = Trim(text);
  if (!text.empty() && text.front() == '+') {
    text.remove_prefix(1);
  }
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return number;
}

std::optional<int64_t> WholeNumber(double number) {
  constexpr double kLimit = 9.2e18;  // below 2^63, so that the cast is defined
  if (std::abs(number) < kLimit && number == std::trunc(number)) {
    return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

std::optional<int64_t> CellAsInteger(sqlite3_value* cell) {
  switch (sqlite3_value_type(cell)) {
    case SQLITE_INTEGER:
      return sqlite3_value_int64(cell);
    case SQLITE_FLOAT:
      return WholeNumber(sqlite3_value_double(cell));
    case SQLITE_TEXT: {
      if (const auto integer = ParseNumber<int64_t>(CellBytes(cell))) {
        return integer;
      }
      const auto number = ParseNumber<double>(CellBytes(cell));
      return number.has_value() ? WholeNumber(*number) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::optional<int64_t> CellAsBool(sqlite3_value* cell) {
  if (sqlite3_value_type(cell) == SQLITE_TEXT) {
    const std::string text = LowerAscii(Trim(CellBytes(cell)));
    for (const std::string_view yes : {"t", "true", "yes", "on", "1"}) {
      if (text == yes) {
        return 1;
      }
    }
    for (const std::string_view no : {"f", "false", "no", "off", "0"}) {
      if (text == no) {
        return 0;
      }
    }
    return std::nullopt;
  }
  const auto integer = CellAsInteger(cell);
  return integer.has_value() && (*integer == 0 || *integer == 1) ? integer : std::nullopt;
}

// SQLite's own convention: text is ISO 8601, integers are Unix seconds, reals are Julian days.
std::optional<int64_t> CellAsTimestamp(sqlite3_value* cell) {
  constexpr double kJulianDayOf1970 = 2'440'587.5;
  switch (sqlite3_value_type(cell)) {
    case SQLITE_TEXT:
      return ParseTimestamp(CellBytes(cell));
    case SQLITE_INTEGER: {
      const int64_t seconds = sqlite3_value_int64(cell);
      constexpr int64_t kLimit = INT64_MAX / 1'000'000;
      return seconds > -kLimit && seconds < kLimit ? std::optional(seconds * 1'000'000)
                                                   : std::nullopt;
    }
    case SQLITE_FLOAT:
      return WholeNumber(
          std::round((sqlite3_value_double(cell) - kJulianDayOf1970) * 86'400'000.0) * 1'000.0);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<DataType> TypeOfDeclaration(std::string_view declared) {
  const std::string type = LowerAscii(Trim(declared));
  if (type.empty()) {
    return std::nullopt;
  }
  if (Contains(type, "bool")) {
    return DataType::kBool;
  }
  if (type.starts_with("date") || type.starts_with("timestamp")) {
    return DataType::kTimestamp;
  }
  if (Contains(type, "real") || Contains(type, "floa") || Contains(type, "doub")) {
    return DataType::kDouble;  // before "int": FLOATING POINT
  }
  if (Contains(type, "int")) {
    return DataType::kInt64;
  }
  if (Contains(type, "char") || Contains(type, "clob") || Contains(type, "text")) {
    return DataType::kText;
  }
  if (Contains(type, "blob") || Contains(type, "bytea")) {
    return DataType::kBytes;
  }
  if (Contains(type, "num") || Contains(type, "dec")) {
    return DataType::kDouble;
  }
  return std::nullopt;
}

std::string_view SqliteTypeName(DataType type) {
  switch (type) {
    case DataType::kBool:
      return "BOOLEAN";
    case DataType::kInt64:
      return "INTEGER";
    case DataType::kDouble:
      return "REAL";
    case DataType::kText:
      return "TEXT";
    case DataType::kTimestamp:
      return "TIMESTAMP";
    case DataType::kBytes:
      return "BLOB";
  }
  return "TEXT";
}

void CellTypes::Add(int storage_class) {
  integers_ |= storage_class == SQLITE_INTEGER;
  reals_ |= storage_class == SQLITE_FLOAT;
  texts_ |= storage_class == SQLITE_TEXT;
  blobs_ |= storage_class == SQLITE_BLOB;
}

DataType CellTypes::type() const {
  if (blobs_ && !texts_ && !integers_ && !reals_) {
    return DataType::kBytes;
  }
  if (texts_ || blobs_ || !seen()) {
    return DataType::kText;
  }
  return reals_ ? DataType::kDouble : DataType::kInt64;
}

void SqliteRowDecoder::Begin(RowBatch* batch, size_t capacity) {
  batch->Reset(schema_, capacity);
  used_ = 0;
  targets_.resize(schema_.columns.size());
  for (size_t i = 0; i < targets_.size(); ++i) {
    RowBatch::Column& column = batch->columns[i];
    Target& target = targets_[i];
    target.type = column.type;
    target.null = column.null.data();
    target.int64s = column.int64s.data();
    target.doubles = column.doubles.data();
    if (i >= decoded_) {
      column.int64s.resize(capacity);
      column.doubles.resize(capacity);
      column.texts.resize(capacity);
      column.types.resize(capacity);
      target.int64s = column.int64s.data();
      target.doubles = column.doubles.data();
    }
    if (i >= decoded_ || column.type == DataType::kText || column.type == DataType::kBytes) {
      target.places.resize(capacity);
    }
  }
}

Status SqliteRowDecoder::Decode(sqlite3_stmt* statement, int64_t row_number, RowBatch* batch) {
  const size_t row = batch->rows;
  const auto cell_of = [&](size_t column) {
    const size_t source = sources_.empty() ? column : sources_[column];
    return sqlite3_column_value(statement, static_cast<int>(source));
  };
  for (size_t i = decoded_; i < targets_.size(); ++i) {  // first: to convert a cell may change it
    CopyCell(cell_of(i), i, row, batch);
  }
  for (size_t i = 0; i < decoded_; ++i) {
    // sqlite3_column_int64 and the like look up the row for every call; the value itself stays
    // valid until the next step, because the connection belongs to this thread alone.
    sqlite3_value* cell = cell_of(i);
    if (!DecodeCell(cell, i, row, batch)) [[unlikely]] {
      RETURN_IF_ERROR(Convert(cell, i, row_number, batch));
    }
  }
  ++batch->rows;
  return OkStatus();
}

void SqliteRowDecoder::Copy(const std::vector<sqlite3_value*>& cells, RowBatch* batch) {
  for (size_t i = 0; i < cells.size(); ++i) {
    CopyCell(cells[i], i, batch->rows, batch);
  }
  ++batch->rows;
}

void SqliteRowDecoder::CopyCell(sqlite3_value* cell, size_t index, size_t row, RowBatch* batch) {
  Target& target = targets_[index];
  DataType& type = batch->columns[index].types[row];
  const int storage = sqlite3_value_type(cell);
  target.null[row] = storage == SQLITE_NULL ? 1 : 0;
  target.places[row] = {};
  switch (storage) {
    case SQLITE_INTEGER: {
      const int64_t number = sqlite3_value_int64(cell);
      target.int64s[row] = number;
      const bool flag = target.type == DataType::kBool && (number == 0 || number == 1) &&
                        purpose_ == CopiedColumns::Purpose::kShow;
      type = flag ? DataType::kBool : DataType::kInt64;
      break;
    }
    case SQLITE_FLOAT:
      type = DataType::kDouble;
      target.doubles[row] = sqlite3_value_double(cell);
      break;
    case SQLITE_TEXT:
    case SQLITE_BLOB:
      type = storage == SQLITE_TEXT ? DataType::kText : DataType::kBytes;
      PutText(index, row, CellBytes(cell), batch);
      break;
    default:
      type = target.type;
  }
}

inline bool SqliteRowDecoder::DecodeCell(sqlite3_value* cell, size_t index, size_t row,
                                         RowBatch* batch) {
  Target& target = targets_[index];
  const int storage = sqlite3_value_type(cell);
  target.null[row] = storage == SQLITE_NULL ? 1 : 0;
  switch (storage) {
    case SQLITE_NULL:
      return true;
    case SQLITE_TEXT:
      if (target.type != DataType::kText) {
        return false;
      }
      PutText(index, row, CellBytes(cell), batch);
      return true;
    case SQLITE_INTEGER:
      if (target.type == DataType::kInt64) {
        target.int64s[row] = sqlite3_value_int64(cell);
        return true;
      }
      [[fallthrough]];
    case SQLITE_FLOAT:
      if (target.type == DataType::kDouble) {
        target.doubles[row] = sqlite3_value_double(cell);
        return true;
      }
      return false;
    default:
      return false;
  }
}

Status SqliteRowDecoder::Convert(sqlite3_value* cell, size_t index, int64_t row_number,
                                 RowBatch* batch) {
  RowBatch::Column& column = batch->columns[index];
  const size_t row = batch->rows;
  std::optional<int64_t> integer;
  switch (column.type) {
    case DataType::kText:
    case DataType::kBytes:
      PutText(index, row, CellBytes(cell), batch);
      return OkStatus();
    case DataType::kDouble:
      if (sqlite3_value_type(cell) == SQLITE_TEXT) {
        if (const auto number = ParseNumber<double>(CellBytes(cell))) {
          column.doubles[row] = *number;
          return OkStatus();
        }
      }
      break;
    case DataType::kInt64:
      integer = CellAsInteger(cell);
      break;
    case DataType::kBool:
      integer = CellAsBool(cell);
      break;
    case DataType::kTimestamp:
      integer = CellAsTimestamp(cell);
      break;
  }
  if (integer.has_value()) {
    column.int64s[row] = *integer;
    if (column.type == DataType::kTimestamp && IsInfinite(*integer)) {
      column.null[row] = 1;  // in computations
    }
    return OkStatus();
  }
  const std::string& name = schema_.columns[index].name;
  const bool blob = sqlite3_value_type(cell) == SQLITE_BLOB;
  std::string shown = blob ? "a blob" : fmt::format("'{}'", CellBytes(cell).substr(0, 64));
  if (!blob && sqlite3_value_type(cell) != SQLITE_TEXT) {
    shown = CellBytes(cell);
  }
  return InvalidArgument(fmt::format("column '{}' is {}, but row {} holds {}", name,
                                     DataTypeName(column.type), row_number, shown))
      .SqlState("22018")
      .Detail(blob ? std::string() : RowsWithText(name, CellBytes(cell)))
      .Hint(fmt::format("convert it in the SELECT, for example with CAST or NULLIF({}, '')",
                        QuoteName(name)));
}

inline void SqliteRowDecoder::PutText(size_t column, size_t row, std::string_view text,
                                      RowBatch* batch) {
  const size_t size = text.size();
  if (used_ + size > batch->arena.size()) [[unlikely]] {
    batch->arena.resize(std::max(used_ + size, batch->arena.size() * 2));
  }
  if (size > 0) {
    std::memcpy(batch->arena.data() + used_, text.data(), size);
  }
  targets_[column].places[row] = {used_, size};
  used_ += size;
}

void SqliteRowDecoder::Finish(RowBatch* batch) {
  const char* const arena = batch->arena.data();
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Target& target = targets_[i];
    if (i < decoded_ && target.type != DataType::kText && target.type != DataType::kBytes) {
      continue;
    }
    std::vector<std::string_view>& texts = batch->columns[i].texts;
    for (size_t row = 0; row < batch->rows; ++row) {
      const TextPlace place = target.null[row] != 0 ? TextPlace{} : target.places[row];
      texts[row] = std::string_view(arena + place.offset, place.size);
    }
  }
}

}  // namespace sluice::catalog
