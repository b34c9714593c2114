#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"

namespace sluice {

struct ColumnInfo {
  std::string name;
  DataType type = DataType::kText;
  std::string database_type;  // the database's spelling: "integer", "character varying(8)", "REAL"
  // The type with which a copy of the column is declared, if known: a domain rather than its base
  // type; "" for a column without a type (SQLite).
  std::optional<std::string> declaration = std::nullopt;
  // How PostgreSQL sends a column of its own.
  struct Wire {
    uint32_t oid = 0;  // of its type, and so on as in RowDescription
    int16_t bytes = -1;
    int32_t modifier = -1;
    std::string send;  // the function that makes its binary form, quoted; "": the type has none
  };
  std::optional<Wire> wire = std::nullopt;
};

struct Schema {
  std::vector<ColumnInfo> columns;

  // Index of `name`: exact match first, else the only case-insensitive match; nullopt otherwise.
  std::optional<size_t> Find(std::string_view name) const;
  std::vector<std::string> Names() const;
};

// A columnar batch of rows on its way from a database to the feature transform (or back).
// Only the first `rows` entries of every vector are meaningful: readers keep the vectors sized to
// their capacity and overwrite them, so that the hot path neither allocates nor clears.
// Not thread-safe.
struct RowBatch {
  struct Column {
    DataType type = DataType::kText;
    std::vector<uint8_t> null;    // 1 where the cell is NULL
    std::vector<int64_t> int64s;  // kInt64, kTimestamp, kBool (0 or 1)
    std::vector<double> doubles;  // kDouble
    // kText, kBytes; points into `arena` or the reader's buffer. For a kDouble cell, if present:
    // the number as the database shows it.
    std::vector<std::string_view> texts;
    // The type of each cell, if the cells of a column have types of their own (SQLite); else empty.
    std::vector<DataType> types;

    DataType TypeAt(size_t row) const { return types.empty() ? type : types[row]; }
    // For a kDouble cell.
    bool HasShownText(size_t row) const { return !texts.empty() && !texts[row].empty(); }
    Value ValueAt(size_t row) const;
    // kBool, kInt64, kDouble, kTimestamp as a double. The cell must not be NULL.
    double NumberAt(size_t row) const;
  };

  size_t rows = 0;
  std::vector<Column> columns;
  std::vector<char> arena;  // the bytes of `texts`; valid until the reader's next call, or kept

  // Makes one column per schema column, each with room for `capacity` rows; rows = 0.
  void Reset(const Schema& schema, size_t capacity);
  // Copies the texts of the rows, none of which is in `arena`, into it: from now on they stay valid
  // as long as the batch.
  void KeepTexts();
  // Of the rows' cells and texts, about.
  size_t Bytes() const;
};

}  // namespace sluice
