#pragma once

#include <cstdint>
#include <string_view>

#include "base/row_batch.h"
#include "catalog/sql/sql_text.h"

// PostgreSQL's types by object identifiers, as clients know them.
namespace sluice::server::pgwire {

// Built-in types, whose identifiers never change (pg_type.dat).
enum TypeOid : uint32_t {
  kUnspecifiedOid = 0,
  kBoolOid = 16,
  kByteaOid = 17,
  kCharOid = 18,
  kNameOid = 19,
  kInt8Oid = 20,
  kInt2Oid = 21,
  kInt4Oid = 23,
  kTextOid = 25,
  kOidOid = 26,
  kJsonOid = 114,
  kFloat4Oid = 700,
  kFloat8Oid = 701,
  kUnknownOid = 705,
  kBpcharOid = 1042,
  kVarcharOid = 1043,
  kDateOid = 1082,
  kTimeOid = 1083,
  kTimestampOid = 1114,
  kTimestamptzOid = 1184,
  kIntervalOid = 1186,
  kTimetzOid = 1266,
  kNumericOid = 1700,
  kUuidOid = 2950,
  kJsonbOid = 3802,
};

// A column's type as RowDescription reports it.
struct ColumnType {
  uint32_t oid = kTextOid;
  int16_t bytes = -1;     // pg_type.typlen
  int32_t modifier = -1;  // as pg_attribute.atttypmod
};

// The type of a result's column: as PostgreSQL sends it, if it is from a SELECT there; else the
// built-in one that database_type names, or that of its DataType. SQLite's declarations do not
// determine the cells' types, so there only the DataType counts.
ColumnType ColumnTypeOf(const ColumnInfo& column, catalog::Dialect dialect);

struct BuiltInType {
  uint32_t oid = 0;
  uint32_t array_oid = 0;  // of arrays of the type
  int16_t bytes = -1;
  std::string_view name;    // as format_type prints it
  std::string_view quoted;  // after pg_catalog.
  bool binary = true;       // its binary form is known here
};
// nullptr: not known, or an array type.
const BuiltInType* FindBuiltInType(uint32_t oid);
// The type of an array's elements; nullptr: not known, or not an array type.
const BuiltInType* FindElementType(uint32_t array_oid);

// Whether the type's binary form is its text, in the client's encoding.
bool IsText(uint32_t oid);

// Whether cells of the type can be sent, and parameters read, in binary.
bool HasBinaryForm(uint32_t oid);

}  // namespace sluice::server::pgwire
