#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"
#include "catalog/postgres/postgres_connection_internal.h"

// PostgreSQL's types, and how their cells are decoded.
namespace sluice::catalog {

DataType TypeOfOid(Oid oid);
bool IsDate(Oid oid);
// The type that a column of `type` is declared with.
std::string_view PostgresTypeName(DataType type);

// Makes the texts of a transaction's cells such that PostgreSQL reads them back as the same values,
// and reads them so.
inline constexpr std::string_view kPinnedText =
    "SET LOCAL DateStyle = ISO; SET LOCAL IntervalStyle = postgres;"
    " SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = hex; SET LOCAL xmloption = "
    "content;"
    " SET LOCAL array_nulls = on";

// One way to decode a cell. Binary where the server produces it faster than text (float8 and time),
// text for all the rest, where it is the other way round. Of float4 the text is the value: 0.1, as
// other databases have it, rather than the double nearest to the float.
enum class CellFormat : int {
  kBoolText,
  kIntegerText,
  kDoubleText,
  kTimestampText,
  kBytesText,
  kText,
  kShown,
  kFloat8Binary,
  kTimestampBinary,
  kDateBinary,
  kBytesBinary,
};
inline bool IsBinary(CellFormat format) {
  return format >= CellFormat::kFloat8Binary;
}
// The fastest format for a column of this type, as format_type names it.
CellFormat StreamFormat(const ColumnInfo& column);
CellFormat TextFormat(DataType type);

// Puts one cell that is not NULL into row `row` of `column`. Texts and binary bytes become views of
// `data`; kBytesText is decoded in place, so `data` must be writable then. False when `data` is
// nothing of that format.
bool DecodeCell(CellFormat format, char* data, size_t size, size_t row, RowBatch::Column* column);

// Puts one cell in text format that is not NULL into row `row` of `column`, for people to see: a
// number keeps the text that it came as, and what is no text of the column's type (bytea in escape
// format) stays a text. `column` is one of PrepareShown; `data` is decoded in place.
void ShowCell(char* data, size_t size, size_t row, RowBatch::Column* column);
// Makes room for what ShowCell keeps, after RowBatch::Reset.
void PrepareShown(size_t capacity, RowBatch::Column* column);

// Names of objects are no text that stands for one object wherever it is read: overloaded functions
// have one name, and what a name means hangs on search_path. Their numbers are.
// The cast that makes such a name a number, for a copy of the column: "::oid"; "" for other types.
std::string_view CastForCopy(std::string_view type);

// A cell of a text-format result as a Value of the type its oid says.
Value CellFromText(const PGresult* result, int row, int column);

// The columns of a SELECT, without running it.
Result<Schema> DescribePostgresSelect(PostgresConnection& connection, std::string_view select);
// What the tables of its columns say of them.
Result<std::vector<ColumnKey>> PostgresKeys(PostgresConnection& connection,
                                            std::string_view select);
// Puts down what copies of the columns are declared with: domains, and every type with its schema.
Status DescribeDeclarations(PostgresConnection& connection, std::string_view select,
                            Schema* schema);

}  // namespace sluice::catalog
