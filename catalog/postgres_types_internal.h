#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/postgres_connection_internal.h"

// PostgreSQL's types, and how their cells are decoded.
namespace sluice::catalog {

DataType TypeOfOid(Oid oid);
bool IsDate(Oid oid);
// The type that a column of `type` is declared with.
std::string_view PostgresTypeName(DataType type);

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

// A cell of a text-format result as a Value of the type its oid says.
Value CellFromText(const PGresult* result, int row, int column);

// The columns of a SELECT, without running it.
Result<Schema> DescribePostgresSelect(PostgresConnection& connection, std::string_view select);

}  // namespace sluice::catalog
