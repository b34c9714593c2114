#pragma once

#include <sqlite3.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "catalog/data_source.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

// SQLite types every cell, we type columns: by the declared type, else by the cells themselves.
namespace sluice::catalog {

// What a declared type ("VARCHAR(8)", "INTEGER") stands for; nullopt when it says nothing.
std::optional<DataType> TypeOfDeclaration(std::string_view declared);

// What SQLite calls the type that a column of `type` should be declared with.
std::string_view SqliteTypeName(DataType type);

// Finds one type that every cell given to it can take: integers, else numbers, else text; blobs
// only among themselves.
class CellTypes {
 public:
  void Add(int storage_class);
  bool seen() const { return integers_ || reals_ || texts_ || blobs_; }
  DataType type() const;

 private:
  bool integers_ = false, reals_ = false, texts_ = false, blobs_ = false;
};

// The columns of a prepared SELECT. Those without a declared type are typed by a small sample of
// their cells, for which the statement is run.
Result<Schema> DescribeSqliteSelect(SqliteConnection& connection, std::string_view select);

// What the tables of its columns say of them.
Result<std::vector<ColumnKey>> SqliteKeys(SqliteConnection& connection, std::string_view select);

// Puts the current row of `statement` into row `row` of `batch`, text and blob bytes into the
// batch's arena as offsets that FinishTexts turns into views. A cell that does not fit its column's
// type is an error that names column, value and row (`row_number` counts from 1 in the shard).
// Columns from `decoded` on are copied: every cell has the type that it is stored with.
class SqliteRowDecoder {
 public:
  SqliteRowDecoder(const Schema& schema, size_t decoded,
                   CopiedColumns::Purpose purpose = CopiedColumns::Purpose::kShow)
      : schema_(schema), decoded_(decoded), purpose_(purpose) {}
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
  // Where the cells of one column go: plain pointers, because this is the hottest loop of reading.
  struct Target {
    DataType type = DataType::kText;
    uint8_t* null = nullptr;
    int64_t* int64s = nullptr;
    double* doubles = nullptr;
    std::vector<TextPlace> places;
  };
  // False when the cell is not stored in the column's own class.
  bool DecodeCell(sqlite3_value* cell, size_t column, size_t row, RowBatch* batch);
  // As it is stored.
  void CopyCell(sqlite3_value* cell, size_t column, size_t row, RowBatch* batch);
  // The slow way, for such a cell.
  Status Convert(sqlite3_value* cell, size_t column, int64_t row_number, RowBatch* batch);
  void PutText(size_t column, size_t row, const void* bytes, size_t size, RowBatch* batch);

  const Schema& schema_;
  const size_t decoded_;
  const CopiedColumns::Purpose purpose_;
  size_t used_ = 0;  // bytes of the arena
  std::vector<Target> targets_;
};

}  // namespace sluice::catalog
