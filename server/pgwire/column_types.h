#pragma once

#include <cstdint>
#include <string_view>

#include "base/row_batch.h"
#include "catalog/sql/sql_text.h"

// PostgreSQL's types as a client knows them: by object identifiers.
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

// What RowDescription says of a column's type.
struct ColumnType {
  uint32_t oid = kTextOid;
  int16_t bytes = -1;     // pg_type.typlen
  int32_t modifier = -1;  // as pg_attribute.atttypmod
};

// The type of a column of a result: PostgreSQL's own where database_type names a built-in one, else
// that of its DataType; a type of the user's is text. SQLite's declarations say nothing of what the
// cells are, so there the DataType alone counts.
ColumnType ColumnTypeOf(const ColumnInfo& column, catalog::Dialect dialect);

struct BuiltInType {
  uint32_t oid = 0;
  uint32_t array_oid = 0;  // of the type's arrays
  int16_t bytes = -1;
  std::string_view name;    // as format_type has it
  std::string_view quoted;  // behind pg_catalog.
  bool binary = true;       // its binary form is known here
};
// nullptr: not known, or an array's.
const BuiltInType* FindBuiltInType(uint32_t oid);
// The type of an array's elements; nullptr: not known, or no array's.
const BuiltInType* FindElementType(uint32_t array_oid);

// The binary form of the type is its text, in the client's encoding.
bool IsText(uint32_t oid);

// Cells of the type can be sent, and parameters read, in binary.
bool HasBinaryForm(uint32_t oid);

}  // namespace sluice::server::pgwire
