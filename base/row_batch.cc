#include "base/row_batch.h"

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

}  // namespace sluice
