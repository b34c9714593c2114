#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/row_batch.h"
#include "catalog/data_source.h"

// PostgreSQL's types, and how their cells are decoded.
namespace sluice::catalog {

// A type of the server's own.
struct BuiltInType {
  std::string_view name;  // as format_type has it
  std::string_view send;  // the function that makes its binary form, with its schema
};
// nullopt: it is not known without asking the server, or it has a modifier.
std::optional<BuiltInType> FindBuiltInType(Oid oid, int modifier);

DataType TypeOfOid(Oid oid);
bool IsDate(Oid oid);
// The type with which a column of `type` is declared.
std::string_view PostgresTypeName(DataType type);

// Settings that make the texts of a transaction's cells such that PostgreSQL reads them back as the
// same values.
inline constexpr std::string_view kPinnedText =
    "SET LOCAL DateStyle = ISO; SET LOCAL IntervalStyle = postgres;"
    " SET LOCAL extra_float_digits = 1; SET LOCAL bytea_output = hex; SET LOCAL xmloption = "
    "content;"
    " SET LOCAL array_nulls = on";

// One way to decode a cell: binary if the server produces it faster than text (float8 and time),
// else text. Of a float4 it is binary, too, because a session may ask for fewer digits
// (extra_float_digits), and its value is the shortest text of the float: 0.1, as in other
// databases, rather than the double nearest to it.
enum class CellFormat : int {
  kBoolText,
  kIntegerText,
  kDoubleText,
  kTimestampText,
  kBytesText,
  kText,
  kShown,
  kFloat8Binary,
  kFloat4Binary,
  kTimestampBinary,
  kDateBinary,
  kBytesBinary,
};
inline bool IsBinary(CellFormat format) {
  return format >= CellFormat::kFloat8Binary;
}
// Whether a cell's text in a plain statement is both what a copy of the column takes and what its
// value is decoded from, so that it need be sent only once. `pinned`: with kPinnedText.
bool HasOneText(const ColumnInfo& column, bool pinned);
// The fastest format for a column of this type, as format_type names it.
CellFormat StreamFormat(const ColumnInfo& column);
CellFormat TextFormat(DataType type);

// Puts one cell that is not NULL into row `row` of `column`. Texts and binary bytes become views of
// `data`; kBytesText is decoded in place, so `data` must be writable then. False if `data` does not
// have that format.
bool DecodeCell(CellFormat format, char* data, size_t size, size_t row, RowBatch::Column* column);

// Puts one cell in text format that is not NULL into row `row` of `column`, for people to read: a
// number keeps its text, and a text that is not of the column's type (bytea in escape format) stays
// a text. `column` was set up by PrepareShown; `data` is decoded in place.
void ShowCell(char* data, size_t size, size_t row, RowBatch::Column* column);
// Makes room for what ShowCell keeps, after RowBatch::Reset.
void PrepareShown(size_t capacity, RowBatch::Column* column);

// The name of an object does not identify it everywhere: overloaded functions share a name, and the
// meaning of a name depends on search_path. Its oid does.
// The cast that turns such a name into an oid, for a copy of the column: "::oid"; "" for other
// types.
std::string_view CastForCopy(std::string_view type);

// A cell of a text-format result as a Value of the type given by its oid.
Value CellFromText(const PGresult* result, int row, int column);

}  // namespace sluice::catalog
