#include "server/pgwire/values.h"

#include <fmt/core.h>

#include <bit>
#include <cstdint>

#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/shown_text_internal.h"

namespace sluice::server::pgwire {
namespace {

int64_t MicrosSince2000(int64_t micros) {
  int64_t since_2000 = micros;
  const bool infinite = micros == INT64_MAX || micros == INT64_MIN ||
                        __builtin_sub_overflow(micros, kMicrosFrom1970To2000, &since_2000);
  return infinite ? (micros > 0 ? INT64_MAX : INT64_MIN) : since_2000;
}

// The cell's text, if the batch has none for it.
std::string TextOfCell(const RowBatch::Column& column, size_t row, const ColumnType& type) {
  switch (column.TypeAt(row)) {
    case DataType::kBool:
      return column.int64s[row] != 0 ? "t" : "f";
    case DataType::kInt64:
      return fmt::format("{}", column.int64s[row]);
    case DataType::kDouble:
      return type.oid == kFloat4Oid ? FloatText(static_cast<float>(column.doubles[row]))
                                    : DoubleText(column.doubles[row]);
    case DataType::kTimestamp: {
      const std::string text =
          PostgresTimestampText(MicrosSince2000(column.int64s[row]), type.oid == kTimestamptzOid);
      return type.oid == kDateOid
                 ? text.substr(0, text.find(' ')) + (text.ends_with(" BC") ? " BC" : "")
                 : text;
    }
    case DataType::kBytes:
      break;
    case DataType::kText:
      return std::string(column.texts[row]);
  }
  // A BLOB in a column of texts (SQLite) may be a text.
  return IsText(type.oid) && IsShowable(column.texts[row]) ? std::string(column.texts[row])
                                                           : HexText(column.texts[row]);
}

// Converts the common types without going through text; false: another type.
bool AppendBinaryCell(const RowBatch::Column& column, size_t row, const ColumnType& type,
                      std::string* out) {
  const DataType cell = column.TypeAt(row);
  if (cell == DataType::kInt64) {
    const int64_t number = column.int64s[row];
    if (type.oid == kInt8Oid) {
      AppendBigEndian<int64_t>(number, out);
      return true;
    }
    const auto small = static_cast<int32_t>(number);
    if (type.oid == kInt4Oid && small == number) {
      AppendBigEndian<int32_t>(small, out);
      return true;
    }
  } else if (cell == DataType::kDouble && type.oid == kFloat8Oid) {
    AppendBigEndian<int64_t>(std::bit_cast<int64_t>(column.doubles[row]), out);
    return true;
  } else if (cell == DataType::kBytes && (type.oid == kByteaOid || !HasBinaryForm(type.oid))) {
    *out += column.texts[row];  // of another type: as the server made it
    return true;
  }
  return false;
}

Status AppendValue(const RowBatch::Column& column, size_t row, const ColumnType& type, bool binary,
                   std::string* out) {
  if (binary && AppendBinaryCell(column, row, type, out)) {
    return OkStatus();
  }
  const DataType cell = column.TypeAt(row);
  std::string made;
  std::string_view text;
  if (cell == DataType::kText && (!binary || IsText(type.oid)) && !IsShowable(column.texts[row])) {
    made = HexText(column.texts[row]);
    text = made;
  } else if (cell == DataType::kText || (cell == DataType::kDouble && column.HasShownText(row))) {
    text = column.texts[row];
  } else {
    made = TextOfCell(column, row, type);
    text = made;
  }
  if (binary) {
    return HasBinaryForm(type.oid)
               ? AppendBinary(type.oid, text, out)
               : Internal(fmt::format("type {} was not read in binary form", type.oid));
  }
  *out += text;
  return OkStatus();
}

}  // namespace

Status CheckBinaryForm(const ColumnType& type, const ColumnInfo& column) {
  if (HasBinaryForm(type.oid)) {
    return OkStatus();
  }
  return Unimplemented(fmt::format("column \"{}\" cannot be sent in binary: that form of type {} "
                                   "is not built",
                                   column.name, column.database_type))
      .Hint("ask for the column as text: in the select, column::text");
}

Status AppendCell(const RowBatch::Column& column, size_t row, const ColumnType& type, bool binary,
                  std::string* out) {
  if (column.null[row] != 0) {
    AppendBigEndian<int32_t>(-1, out);
    return OkStatus();
  }
  const size_t begin = out->size();
  AppendBigEndian<int32_t>(0, out);
  Status appended = AppendValue(column, row, type, binary, out);
  if (!appended.ok()) {
    out->resize(begin);
    return appended;
  }
  std::string size;
  AppendBigEndian<int32_t>(static_cast<int32_t>(out->size() - begin - sizeof(int32_t)), &size);
  out->replace(begin, size.size(), size);
  return OkStatus();
}

}  // namespace sluice::server::pgwire
