#include "base/row_batch.h"

#include <algorithm>

#include "base/letter_case.h"

namespace sluice {
std::optional<size_t> Schema::Find(std::string_view name) const {
  std::optional<size_t> found;
  int matches = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) {
      return i;
    }
    if (SameIgnoringCase(columns[i].name, name)) {
      found = i;
      ++matches;
    }
  }
  return matches == 1 ? found : std::nullopt;
}

std::vector<std::string> Schema::Names() const {
  std::vector<std::string> names;
  names.reserve(columns.size());
  for (const ColumnInfo& column : columns) {
    names.push_back(column.name);
  }
  return names;
}

Value RowBatch::Column::ValueAt(size_t row) const {
  if (null[row] != 0) {
    return std::monostate{};
  }
  switch (TypeAt(row)) {
    case DataType::kBool:
      return int64s[row] != 0;
    case DataType::kInt64:
    case DataType::kTimestamp:
      return int64s[row];
    case DataType::kDouble:
      return doubles[row];
    case DataType::kText:
    case DataType::kBytes:
      break;
  }
  return std::string(texts[row]);
}

double RowBatch::Column::NumberAt(size_t row) const {
  return TypeAt(row) == DataType::kDouble ? doubles[row] : static_cast<double>(int64s[row]);
}

void RowBatch::Reset(const Schema& schema, size_t capacity) {
  rows = 0;
  columns.resize(schema.columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    Column& column = columns[i];
    column.type = schema.columns[i].type;
    column.null.resize(capacity);
    column.types.clear();
    if (column.type != DataType::kText && column.type != DataType::kBytes) {
      column.texts.clear();
    }
    switch (column.type) {
      case DataType::kBool:
      case DataType::kInt64:
      case DataType::kTimestamp:
        column.int64s.resize(capacity);
        break;
      case DataType::kDouble:
        column.doubles.resize(capacity);
        break;
      case DataType::kText:
      case DataType::kBytes:
        column.texts.resize(capacity);
        break;
    }
  }
}

namespace {

// Other cells may hold what an earlier batch left there.
bool HasText(const RowBatch::Column& column, size_t row) {
  if (column.texts.empty() || column.null[row] != 0) {
    return false;
  }
  const DataType type = column.TypeAt(row);
  return type == DataType::kText || type == DataType::kBytes || type == DataType::kDouble;
}

size_t TextBytes(const RowBatch& batch) {
  size_t bytes = 0;
  for (const RowBatch::Column& column : batch.columns) {
    for (size_t row = 0; row < batch.rows; ++row) {
      bytes += HasText(column, row) ? column.texts[row].size() : 0;
    }
  }
  return bytes;
}

}  // namespace

void RowBatch::KeepTexts() {
  arena.resize(std::max(arena.size(), TextBytes(*this)));
  char* at = arena.data();
  for (Column& column : columns) {
    for (size_t row = 0; row < rows; ++row) {
      if (!HasText(column, row)) {
        continue;
      }
      std::string_view& text = column.texts[row];
      char* const end = std::copy(text.begin(), text.end(), at);
      text = {at, end};
      at = end;
    }
  }
}

size_t RowBatch::Bytes() const {
  return TextBytes(*this) + rows * columns.size() * (sizeof(std::string_view) + sizeof(int64_t));
}

}  // namespace sluice
