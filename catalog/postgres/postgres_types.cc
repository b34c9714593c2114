#include <endian.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_types_internal.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/timestamp_text.h"
#include "catalog/sql/value_expression.h"

namespace sluice::catalog {
namespace {

// Object identifiers of built-in types never change (pg_type.dat).
enum BuiltInOid : Oid {
  kBoolOid = 16,
  kByteaOid = 17,
  kInt8Oid = 20,
  kInt2Oid = 21,
  kInt4Oid = 23,
  kOidOid = 26,
  kFloat4Oid = 700,
  kFloat8Oid = 701,
  kDateOid = 1082,
  kTimestampOid = 1114,
  kTimestamptzOid = 1184,
  kNumericOid = 1700,
};

constexpr int64_t kDaysTo2000 = 10'957;
constexpr int64_t kMicrosPerDay = 86'400'000'000;

template <typename Integer>
Integer FromNetwork(const char* data) {
  Integer number = 0;
  std::memcpy(&number, data, sizeof(number));
  if constexpr (sizeof(Integer) == 8) {
    return static_cast<Integer>(be64toh(static_cast<uint64_t>(number)));
  } else {
    return static_cast<Integer>(be32toh(static_cast<uint32_t>(number)));
  }
}

bool ParseInteger(const char* data, size_t size, int64_t* number) {
  // Written by hand: this is the hottest loop of reading, and the server never sends spaces or '+'.
  const bool negative = size > 0 && data[0] == '-';
  size_t i = negative ? 1 : 0;
  constexpr size_t kDigitsThatFit = 18;
  if (i == size || size - i > kDigitsThatFit) {
    const auto parsed = std::from_chars(data, data + size, *number);
    return parsed.ec == std::errc() && parsed.ptr == data + size;
  }
  int64_t value = 0;
  for (; i < size; ++i) {
    const auto digit = static_cast<unsigned char>(data[i] - '0');
    if (digit > 9) {
      return false;
    }
    value = value * 10 + digit;
  }
  *number = negative ? -value : value;
  return true;
}

bool ParseDouble(const char* data, size_t size, double* number) {
  const std::string_view text(data, size);
  if (text == "NaN") {
    *number = std::nan("");
    return true;
  }
  if (text == "Infinity" || text == "-Infinity") {
    *number = text.front() == '-' ? -HUGE_VAL : HUGE_VAL;
    return true;
  }
  const auto parsed = std::from_chars(data, data + size, *number);
  if (parsed.ec == std::errc::result_out_of_range) {  // a numeric beyond double's range
    *number = std::strtod(std::string(text).c_str(), nullptr);
    return true;
  }
  return parsed.ec == std::errc() && parsed.ptr == data + size;
}

// The double that the float's shortest text is: 0.1 of 0.1F.
bool WidenReal(float real, double* number) {
  *number = static_cast<double>(real);
  constexpr float kWholeDigits = 1 << 24;  // whole numbers have all of their digits up to here
  if (!std::isfinite(real) || (real == std::trunc(real) && std::abs(real) < kWholeDigits)) {
    return true;
  }
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), real);
  return error == std::errc() &&
         ParseDouble(text.data(), static_cast<size_t>(end - text.data()), number);
}

bool ParseBool(std::string_view text, int64_t* flag) {
  *flag = text == "t" || text == "true" ? 1 : 0;
  return *flag == 1 || text == "f" || text == "false";
}

// Decodes "\x0aff" in place.
bool DecodeHex(char* data, size_t size, std::string_view* bytes) {
  if (size < 2 || data[0] != '\\' || data[1] != 'x' || size % 2 != 0) {
    return false;
  }
  const size_t count = (size - 2) / 2;
  for (size_t i = 0; i < count; ++i) {
    const int high = HexDigit(data[2 + 2 * i]);
    const int low = HexDigit(data[3 + 2 * i]);
    if (high < 0 || low < 0) {
      return false;
    }
    data[i] = static_cast<char>(high * 16 + low);
  }
  *bytes = std::string_view(data, count);
  return true;
}

int64_t TimestampFromPostgres(int64_t micros) {
  return IsInfinite(micros)
             ? micros
             : TimestampOf(micros / kMicrosPerDay + kDaysTo2000, micros % kMicrosPerDay);
}

int64_t DateFromPostgres(int32_t days) {
  if (days == INT32_MAX || days == INT32_MIN) {
    return days > 0 ? kTimestampInfinity : kTimestampMinusInfinity;
  }
  return TimestampOf(days + kDaysTo2000, 0);
}

// An infinite time is NULL in computations.
bool PutTimestamp(int64_t micros, size_t row, RowBatch::Column* column) {
  column->int64s[row] = micros;
  column->null[row] = IsInfinite(micros) ? 1 : 0;
  return true;
}

}  // namespace

DataType TypeOfOid(Oid oid) {
  switch (oid) {
    case kBoolOid:
      return DataType::kBool;
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kOidOid:
      return DataType::kInt64;
    case kFloat4Oid:
    case kFloat8Oid:
    case kNumericOid:
      return DataType::kDouble;
    case kDateOid:
    case kTimestampOid:
    case kTimestamptzOid:
      return DataType::kTimestamp;
    case kByteaOid:
      return DataType::kBytes;
    default:
      return DataType::kText;
  }
}

bool IsDate(Oid oid) {
  return oid == kDateOid;
}

std::string_view PostgresTypeName(DataType type) {
  switch (type) {
    case DataType::kBool:
      return "boolean";
    case DataType::kInt64:
      return "bigint";
    case DataType::kDouble:
      return "double precision";
    case DataType::kText:
      return "text";
    case DataType::kTimestamp:
      return "timestamp";
    case DataType::kBytes:
      return "bytea";
  }
  return "text";
}

bool HasOneText(const ColumnInfo& column, bool pinned) {
  if (!CastForCopy(column.database_type).empty() ||
      !ValueExpression("", column.database_type).empty()) {
    return false;
  }
  switch (column.type) {
    case DataType::kBool:
    case DataType::kInt64:
    case DataType::kText:
      return true;
    case DataType::kDouble:  // a session may ask for fewer digits
      return pinned ||
             (column.database_type != "double precision" && column.database_type != "real");
    case DataType::kTimestamp:
    case DataType::kBytes:
      break;
  }
  return false;
}

CellFormat StreamFormat(const ColumnInfo& column) {
  switch (column.type) {
    case DataType::kDouble:
      return column.database_type == "double precision" ? CellFormat::kFloat8Binary
             : column.database_type == "real"           ? CellFormat::kFloat4Binary
                                                        : CellFormat::kDoubleText;
    case DataType::kTimestamp:
      return column.database_type == "date" ? CellFormat::kDateBinary
                                            : CellFormat::kTimestampBinary;
    case DataType::kBytes:
      return CellFormat::kBytesBinary;
    case DataType::kBool:
    case DataType::kInt64:
    case DataType::kText:
      break;
  }
  return TextFormat(column.type);
}

CellFormat TextFormat(DataType type) {
  switch (type) {
    case DataType::kBool:
      return CellFormat::kBoolText;
    case DataType::kInt64:
      return CellFormat::kIntegerText;
    case DataType::kDouble:
      return CellFormat::kDoubleText;
    case DataType::kTimestamp:
      return CellFormat::kTimestampText;
    case DataType::kBytes:
      return CellFormat::kBytesText;
    case DataType::kText:
      break;
  }
  return CellFormat::kText;
}

bool DecodeCell(CellFormat format, char* data, size_t size, size_t row, RowBatch::Column* column) {
  switch (format) {
    case CellFormat::kText:
    case CellFormat::kBytesBinary:
      column->texts[row] = std::string_view(data, size);
      return true;
    case CellFormat::kIntegerText:
      return ParseInteger(data, size, &column->int64s[row]);
    case CellFormat::kBoolText:
      return ParseBool(std::string_view(data, size), &column->int64s[row]);
    case CellFormat::kDoubleText:
      return ParseDouble(data, size, &column->doubles[row]);
    case CellFormat::kTimestampText: {
      const auto micros = ParseTimestamp(std::string_view(data, size));
      return micros.has_value() && PutTimestamp(*micros, row, column);
    }
    case CellFormat::kBytesText:
      return DecodeHex(data, size, &column->texts[row]);
    case CellFormat::kShown:
      ShowCell(data, size, row, column);
      return true;
    case CellFormat::kFloat8Binary:
      column->doubles[row] =
          size == sizeof(double) ? std::bit_cast<double>(FromNetwork<int64_t>(data)) : 0;
      return size == sizeof(double);
    case CellFormat::kFloat4Binary:
      return size == sizeof(float) &&
             WidenReal(std::bit_cast<float>(FromNetwork<int32_t>(data)), &column->doubles[row]);
    case CellFormat::kTimestampBinary:
      return size == sizeof(int64_t) &&
             PutTimestamp(TimestampFromPostgres(FromNetwork<int64_t>(data)), row, column);
    case CellFormat::kDateBinary:
      return size == sizeof(int32_t) &&
             PutTimestamp(DateFromPostgres(FromNetwork<int32_t>(data)), row, column);
  }
  return false;
}

void ShowCell(char* data, size_t size, size_t row, RowBatch::Column* column) {
  if (column->type == DataType::kDouble) {
    column->texts[row] = std::string_view(data, size);
  }
  const bool escaped = column->type == DataType::kBytes && (size < 2 || data[1] != 'x');
  if (!escaped && DecodeCell(TextFormat(column->type), data, size, row, column)) {
    return;
  }
  if (column->types.empty()) {
    column->types.assign(column->null.size(), column->type);
    column->texts.resize(column->null.size());
  }
  column->types[row] = DataType::kText;
  column->texts[row] = std::string_view(data, size);
}

void PrepareShown(size_t capacity, RowBatch::Column* column) {
  if (column->type == DataType::kDouble) {
    column->texts.resize(capacity);
  }
}

std::string_view CastForCopy(std::string_view type) {
  constexpr std::array<std::string_view, 11> kNames = {
      "regproc", "regprocedure", "regoper",   "regoperator",   "regclass",    "regcollation",
      "regtype", "regrole",      "regconfig", "regdictionary", "regnamespace"};
  const bool array = type.ends_with("[]");
  const std::string_view element = array ? type.substr(0, type.size() - 2) : type;
  if (std::find(kNames.begin(), kNames.end(), element) == kNames.end()) {
    return "";
  }
  return array ? "::oid[]" : "::oid";
}

Value CellFromText(const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column) != 0) {
    return std::monostate{};
  }
  const DataType type = TypeOfOid(PQftype(result, column));
  std::string text(PostgresText(result, row, column));
  RowBatch::Column cell;
  cell.type = type;
  cell.null.resize(1);
  cell.int64s.resize(1);
  cell.doubles.resize(1);
  cell.texts.resize(1);
  if (DecodeCell(TextFormat(type), text.data(), text.size(), 0, &cell)) {
    return cell.ValueAt(0);
  }
  return text;
}

}  // namespace sluice::catalog
