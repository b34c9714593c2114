#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"

// SQLite has a type per cell, we have one per column: the declared type, else derived from the
// cells.
namespace sluice::catalog {

// The type for a declared type ("VARCHAR(8)", "INTEGER"); nullopt if it does not determine one.
std::optional<DataType> TypeOfDeclaration(std::string_view declared);

// SQLite's name of the type with which a column of `type` should be declared.
std::string_view SqliteTypeName(DataType type);

// Finds one type that fits all cells added to it: integers, else numbers, else text; blobs only if
// all are blobs.
class CellTypes {
 public:
  void Add(int storage_class);
  bool seen() const { return integers_ || reals_ || texts_ || blobs_; }
  bool numbers() const { return seen() && !texts_ && !blobs_; }
  DataType type() const;

 private:
  bool integers_ = false, reals_ = false, texts_ = false, blobs_ = false;
};

// Puts the current row of `statement` into row `row` of `batch`, text and blob bytes into the
// batch's arena as offsets that FinishTexts turns into views. A cell that does not fit its column's
// type is an error that names column, value and row (`row_number` counts from 1 in the shard).
// Columns from `decoded` on are copied: every cell keeps its stored type.
// `sources`: for each column, that of the statement, of which one may be both decoded and copied;
// empty: the same.
class SqliteRowDecoder {
 public:
  SqliteRowDecoder(const Schema& schema, size_t decoded,
                   CopiedColumns::Purpose purpose = CopiedColumns::Purpose::kShow,
                   std::vector<size_t> sources = {})
      : schema_(schema), decoded_(decoded), purpose_(purpose), sources_(std::move(sources)) {}
  void Begin(RowBatch* batch, size_t capacity);
  Status Decode(sqlite3_stmt* statement, int64_t row_number, RowBatch* batch);
  // The cells of a row, all of them copied.
  void Copy(const std::vector<sqlite3_value*>& cells, RowBatch* batch);
  void Finish(RowBatch* batch);
  // Of the texts and blobs of the rows since Begin.
  size_t bytes() const { return used_; }

 private:
  struct TextPlace {
    size_t offset = 0;
    size_t size = 0;
  };
  // Destination of one column's cells: plain pointers, because this is the hottest loop of reading.
  struct Target {
    DataType type = DataType::kText;
    uint8_t* null = nullptr;
    int64_t* int64s = nullptr;
    double* doubles = nullptr;
    std::vector<TextPlace> places;
  };
  // False if the cell is not stored in the column's own class.
  bool DecodeCell(sqlite3_value* cell, size_t column, size_t row, RowBatch* batch);
  // As it is stored.
  void CopyCell(sqlite3_value* cell, size_t column, size_t row, RowBatch* batch);
  // The slow path for such a cell.
  Status Convert(sqlite3_value* cell, size_t column, int64_t row_number, RowBatch* batch);
  void PutText(size_t column, size_t row, std::string_view text, RowBatch* batch);

  const Schema& schema_;
  const size_t decoded_;
  const CopiedColumns::Purpose purpose_;
  const std::vector<size_t> sources_;
  size_t used_ = 0;  // bytes of the arena
  std::vector<Target> targets_;
};

}  // namespace sluice::catalog
