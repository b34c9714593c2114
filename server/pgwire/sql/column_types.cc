#include "server/pgwire/sql/column_types.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>

namespace sluice::server::pgwire {
namespace {

constexpr BuiltInType kBuiltInTypes[] = {
    {kBoolOid, 1000, 1, "boolean", "bool"},
    {kByteaOid, 1001, -1, "bytea", "bytea"},
    {kCharOid, 1002, 1, "\"char\"", "\"char\""},
    {kNameOid, 1003, 64, "name", "name"},
    {kInt8Oid, 1016, 8, "bigint", "int8"},
    {kInt2Oid, 1005, 2, "smallint", "int2"},
    {kInt4Oid, 1007, 4, "integer", "int4"},
    {kTextOid, 1009, -1, "text", "text"},
    {kOidOid, 1028, 4, "oid", "oid"},
    {kJsonOid, 199, -1, "json", "json"},
    {kFloat4Oid, 1021, 4, "real", "float4"},
    {kFloat8Oid, 1022, 8, "double precision", "float8"},
    {kBpcharOid, 1014, -1, "character", "bpchar"},
    {kBpcharOid, 1014, -1, "bpchar", "bpchar"},
    {kVarcharOid, 1015, -1, "character varying", "varchar"},
    {kDateOid, 1182, 4, "date", "date"},
    {kTimestampOid, 1115, 8, "timestamp without time zone", "timestamp"},
    {kTimestampOid, 1115, 8, "timestamp", "timestamp"},  // as our own results have it
    {kTimestamptzOid, 1185, 8, "timestamp with time zone", "timestamptz"},
    {kNumericOid, 1231, -1, "numeric", "numeric"},
    {kUuidOid, 2951, 16, "uuid", "uuid"},
    {kJsonbOid, 3807, -1, "jsonb", "jsonb"},
    {142, 143, -1, "xml", "xml", false},
    {600, 1017, 16, "point", "point", false},
    {650, 651, -1, "cidr", "cidr", false},
    {829, 1040, 6, "macaddr", "macaddr", false},
    {869, 1041, -1, "inet", "inet", false},
    {kTimeOid, 1183, 8, "time without time zone", "time"},
    {kIntervalOid, 1187, 16, "interval", "interval"},
    {kTimetzOid, 1270, 12, "time with time zone", "timetz"},
    {1560, 1561, -1, "bit", "bit", false},
    {1560, 1561, -1, "\"bit\"", "bit", false},
    {1562, 1563, -1, "bit varying", "varbit", false},
};

constexpr int32_t kHeaderOfModifier = 4;  // VARHDRSZ

const BuiltInType* FindByName(std::string_view name) {
  const auto* found = std::find_if(std::begin(kBuiltInTypes), std::end(kBuiltInTypes),
                                   [name](const BuiltInType& type) { return type.name == name; });
  return found == std::end(kBuiltInTypes) ? nullptr : found;
}

// "8", "10,2" as the type stores it. -1: the type has no modifier, or the text is not one.
int32_t ModifierOf(uint32_t oid, std::string_view text) {
  int32_t numbers[2] = {0, 0};
  size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end && count < 2) {
    const auto parsed = std::from_chars(at, end, numbers[count]);
    if (parsed.ec != std::errc()) {
      return -1;
    }
    ++count;
    at = parsed.ptr < end && *parsed.ptr == ',' ? parsed.ptr + 1 : parsed.ptr;
    if (at == parsed.ptr) {
      break;
    }
  }
  if (at != end || count == 0) {
    return -1;
  }
  constexpr int32_t kScaleBits = 0x7FF;
  constexpr int32_t kPrecisionFactor = 1 << 16;
  switch (oid) {
    case kBpcharOid:
    case kVarcharOid:
      return numbers[0] + kHeaderOfModifier;
    case kNumericOid:
      return numbers[0] * kPrecisionFactor + (numbers[1] & kScaleBits) + kHeaderOfModifier;
    default:
      return numbers[0];
  }
}

uint32_t OidOfDataType(DataType type) {
  switch (type) {
    case DataType::kBool:
      return kBoolOid;
    case DataType::kInt64:
      return kInt8Oid;
    case DataType::kDouble:
      return kFloat8Oid;
    case DataType::kTimestamp:
      return kTimestampOid;
    case DataType::kBytes:
      return kByteaOid;
    case DataType::kText:
      break;
  }
  return kTextOid;
}

}  // namespace

ColumnType ColumnTypeOf(const ColumnInfo& column, catalog::Dialect dialect) {
  if (column.wire.has_value()) {
    return {column.wire->oid, column.wire->bytes, column.wire->modifier};
  }
  std::string name = dialect == catalog::Dialect::kPostgres ? column.database_type : "";
  const bool array = name.ends_with("[]");
  if (array) {
    name.resize(name.size() - 2);
  }
  std::string modifier;
  const size_t open = name.find('(');
  const size_t close = name.find(')');
  if (open != std::string::npos && close != std::string::npos && open < close) {
    modifier = name.substr(open + 1, close - open - 1);
    name.erase(open, close - open + 1);
  }
  const BuiltInType* type = FindByName(name);
  if (type == nullptr) {
    type = FindBuiltInType(array ? kTextOid : OidOfDataType(column.type));
    return {type->oid, type->bytes, -1};
  }
  const int32_t kept = modifier.empty() ? -1 : ModifierOf(type->oid, modifier);
  return array ? ColumnType{type->array_oid, -1, kept} : ColumnType{type->oid, type->bytes, kept};
}

const BuiltInType* FindBuiltInType(uint32_t oid) {
  const auto* found = std::find_if(std::begin(kBuiltInTypes), std::end(kBuiltInTypes),
                                   [oid](const BuiltInType& type) { return type.oid == oid; });
  return found == std::end(kBuiltInTypes) ? nullptr : found;
}

const BuiltInType* FindElementType(uint32_t array_oid) {
  const auto* found =
      std::find_if(std::begin(kBuiltInTypes), std::end(kBuiltInTypes),
                   [array_oid](const BuiltInType& type) { return type.array_oid == array_oid; });
  return found == std::end(kBuiltInTypes) ? nullptr : found;
}

bool HasBinaryForm(uint32_t oid) {
  const BuiltInType* type = FindBuiltInType(oid);
  if (type == nullptr) {
    type = FindElementType(oid);
  }
  return type != nullptr && type->binary;
}

bool IsText(uint32_t oid) {
  switch (oid) {
    case kUnspecifiedOid:
    case kUnknownOid:
    case kTextOid:
    case kVarcharOid:
    case kBpcharOid:
    case kNameOid:
    case kJsonOid:
    case kJsonbOid:  // after one byte of ASCII
      return true;
    default:
      return false;
  }
}

}  // namespace sluice::server::pgwire
