#include "server/pgwire/embedded/cells.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "base/letter_case.h"
#include "base/utf8.h"
#include "catalog/sql/sql_text.h"
#include "server/pgwire/messages.h"
#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/shown_text_internal.h"

namespace sluice::server::pgwire {
namespace {

using catalog::EmbeddedCell;
using CellKind = EmbeddedCell::Kind;

std::string_view BoolOf(std::string_view text) {
  if (text == "1" || text == "t" || text == "true" || text == "TRUE" || text == "True") {
    return "t";
  }
  return text == "0" || text == "f" || text == "false" || text == "FALSE" || text == "False"
             ? "f"
             : std::string_view();
}

// ISO 8601's T becomes a blank, as PostgreSQL prints it.
std::string TimestampText(std::string_view text) {
  constexpr size_t kDateBytes = 10;
  std::string shown(text);
  if (shown.size() > kDateBytes && shown[kDateBytes] == 'T') {
    shown[kDateBytes] = ' ';
    if (shown.back() == 'Z') {
      shown.pop_back();
    }
  }
  return shown;
}

// Whether the cell's text is a value of the type.
bool Fits(const EmbeddedCell& cell, uint32_t type) {
  switch (type) {
    case kInt8Oid:
    case kOidOid:
      return cell.kind == CellKind::kInteger;
    case kFloat8Oid:
      return cell.kind == CellKind::kReal || cell.kind == CellKind::kInteger;
    case kBoolOid:
      return (cell.kind == CellKind::kInteger && (cell.integer == 0 || cell.integer == 1)) ||
             (cell.kind == CellKind::kText && !BoolOf(cell.bytes).empty());
    case kByteaOid:
      return cell.kind == CellKind::kBlob;
    case kNumericOid:
      return cell.kind == CellKind::kInteger || cell.kind == CellKind::kReal ||
             (cell.kind == CellKind::kText && ParseDoubleText(cell.bytes).has_value());
    case kDateOid:
      return cell.kind == CellKind::kText && ParsePostgresDate(cell.bytes).has_value();
    case kTimestampOid:
    case kTimestamptzOid:
      return cell.kind == CellKind::kText &&
             ParsePostgresTimestamp(TimestampText(cell.bytes)).has_value();
    case kTimeOid:
      return cell.kind == CellKind::kText && ParsePostgresTime(cell.bytes).has_value();
    default:
      return cell.kind == CellKind::kText;
  }
}

Status AppendBinaryField(const EmbeddedCell& cell, const WireColumn& column, std::string* out) {
  const uint32_t type = column.type.oid;
  if (type == kInt8Oid && cell.kind == CellKind::kInteger) {
    AppendBigEndian<int64_t>(cell.integer, out);
    return OkStatus();
  }
  if (type == kFloat8Oid && (cell.kind == CellKind::kReal || cell.kind == CellKind::kInteger)) {
    AppendBigEndian<int64_t>(
        std::bit_cast<int64_t>(cell.kind == CellKind::kReal ? cell.real
                                                            : static_cast<double>(cell.integer)),
        out);
    return OkStatus();
  }
  if (type == kByteaOid && (cell.kind == CellKind::kText || cell.kind == CellKind::kBlob)) {
    *out += cell.bytes;
    return OkStatus();
  }
  const std::string text = CellText(cell, type);
  if (IsText(type)) {
    *out += text;
    return OkStatus();
  }
  const Status appended = AppendBinary(type, text, out);
  return appended.ok() ? appended
                       : Status(Code::kInvalidArgument,
                                fmt::format("a value of column \"{}\" is not of the type that the "
                                            "column is declared as: '{}'",
                                            column.name, text.substr(0, 60)))
                             .SqlState("22P03")
                             .Hint("ask for the column as text, or CAST it");
}

}  // namespace

std::string CellText(const EmbeddedCell& cell, uint32_t type) {
  switch (cell.kind) {
    case CellKind::kNull:
      return "";
    case CellKind::kInteger:
      if (type == kBoolOid && (cell.integer == 0 || cell.integer == 1)) {
        return cell.integer == 1 ? "t" : "f";
      }
      return type == kByteaOid ? HexText(fmt::format("{}", cell.integer))
                               : fmt::format("{}", cell.integer);
    case CellKind::kReal:
      return type == kByteaOid ? HexText(DoubleText(cell.real)) : DoubleText(cell.real);
    case CellKind::kText:
      if (type == kBoolOid && !BoolOf(cell.bytes).empty()) {
        return std::string(BoolOf(cell.bytes));
      }
      if (type == kTimestampOid || type == kTimestamptzOid) {
        return TimestampText(cell.bytes);
      }
      return type == kByteaOid || !IsShowable(cell.bytes) ? HexText(cell.bytes)
                                                          : std::string(cell.bytes);
    case CellKind::kBlob:
      break;
  }
  return type == kByteaOid || !IsShowable(cell.bytes) ? HexText(cell.bytes)
                                                      : std::string(cell.bytes);
}

Status AppendField(const EmbeddedCell& cell, const WireColumn& column, std::string* out) {
  if (cell.kind == CellKind::kNull) {
    AppendBigEndian<int32_t>(-1, out);
    return OkStatus();
  }
  const uint32_t type = column.type.oid;
  if (column.format == 0 && type != kByteaOid && type != kBoolOid &&
      (cell.kind == CellKind::kInteger || cell.kind == CellKind::kReal)) {
    std::array<char, kMostNumberChars> digits{};
    char* const text = digits.data();
    char* const end = cell.kind == CellKind::kReal
                          ? PutDouble(cell.real, text)
                          : std::to_chars(text, text + kMostNumberChars, cell.integer).ptr;
    AppendBigEndian<int32_t>(static_cast<int32_t>(end - text), out);
    out->append(text, end);
    return OkStatus();
  }
  if (column.format == 0 && cell.kind == CellKind::kText && IsText(type) &&
      IsShowable(cell.bytes)) {
    AppendBigEndian<int32_t>(static_cast<int32_t>(cell.bytes.size()), out);
    *out += cell.bytes;
    return OkStatus();
  }
  const size_t begin = out->size();
  out->append(kLengthBytes, '\0');  // the length, when that is known
  if (column.format != 0) {
    Status appended = AppendBinaryField(cell, column, out);
    if (!appended.ok()) {
      out->resize(begin);
      return appended;
    }
  } else {
    *out += CellText(cell, type);
  }
  PutUint32(*out, begin, static_cast<uint32_t>(out->size() - begin - kLengthBytes));
  return OkStatus();
}

Result<std::vector<WireColumn>> DescribeColumns(const catalog::EmbeddedStatement& statement,
                                                const std::vector<uint16_t>& formats) {
  const auto& columns = statement.columns();
  if (formats.size() > 1 && formats.size() != columns.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("bind message has {} result formats but query has {} columns",
                              formats.size(), columns.size()))
        .SqlState("08P01");
  }
  std::vector<WireColumn> described;
  for (size_t i = 0; i < columns.size(); ++i) {
    const uint32_t oid = columns[i].type.oid == 0 ? uint32_t{kTextOid} : columns[i].type.oid;
    WireColumn column;
    column.name = columns[i].name;
    column.type = {oid, catalog::PostgresTypeBytes(oid), columns[i].type.modifier};
    column.format = formats.empty() ? uint16_t{0} : formats[formats.size() == 1 ? 0 : i];
    described.push_back(std::move(column));
  }
  return described;
}

ColumnType TypeOfCells(const catalog::DeclaredType& declared,
                       const std::vector<EmbeddedCell>& cells) {
  const auto all_fit = [&cells](uint32_t type) {
    return std::all_of(cells.begin(), cells.end(), [type](const EmbeddedCell& cell) {
      return cell.kind == CellKind::kNull || Fits(cell, type);
    });
  };
  const bool any = std::any_of(cells.begin(), cells.end(), [](const EmbeddedCell& cell) {
    return cell.kind != CellKind::kNull;
  });
  const auto type = [](uint32_t oid) {
    return ColumnType{oid, catalog::PostgresTypeBytes(oid), -1};
  };
  if (declared.oid != 0 && (!any || all_fit(declared.oid) || IsText(declared.oid))) {
    return {declared.oid, catalog::PostgresTypeBytes(declared.oid), declared.modifier};
  }
  // Types of the catalogs whose texts SQLite stores as numbers ('1' of an int2vector).
  constexpr uint32_t kOfCatalogs[] = {kCharOid, 22, 24, 30, 1002, 1003, 1005, 1009, 1021, 1028};
  if (std::find(std::begin(kOfCatalogs), std::end(kOfCatalogs), declared.oid) !=
      std::end(kOfCatalogs)) {
    return type(declared.oid);
  }
  if (!any) {
    return type(kTextOid);
  }
  for (const uint32_t oid : {uint32_t{kInt8Oid}, uint32_t{kFloat8Oid}, uint32_t{kByteaOid}}) {
    if (all_fit(oid)) {
      return type(oid);
    }
  }
  return type(kTextOid);
}

namespace {

Result<catalog::SqlParameter> ParameterValue(uint32_t type, std::string text) {
  const auto invalid = [&](std::string_view name) {
    return Status(Code::kInvalidArgument,
                  fmt::format("invalid input syntax for type {}: \"{}\"", name, text))
        .SqlState("22P02");
  };
  switch (type) {
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
    case kOidOid: {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error != std::errc() || end != text.data() + text.size()) {
        return invalid("bigint");
      }
      return catalog::SqlParameter(number);
    }
    case kFloat4Oid:
    case kFloat8Oid: {
      const std::optional<double> number = ParseDoubleText(text);
      return number.has_value() ? Result<catalog::SqlParameter>(catalog::SqlParameter(*number))
                                : invalid("double precision");
    }
    case kNumericOid: {
      int64_t whole = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
      if (error == std::errc() && end == text.data() + text.size()) {
        return catalog::SqlParameter(whole);
      }
      const std::optional<double> number = ParseDoubleText(text);
      return number.has_value() ? Result<catalog::SqlParameter>(catalog::SqlParameter(*number))
                                : invalid("numeric");
    }
    case kBoolOid: {
      const std::string_view word = BoolOf(LowerAscii(text));
      return word.empty() ? invalid("boolean")
                          : Result<catalog::SqlParameter>(
                                catalog::SqlParameter(int64_t{word == "t" ? 1 : 0}));
    }
    default:
      break;
  }
  if (!IsUtf8(text)) {
    return Status(Code::kInvalidArgument, "invalid byte sequence for encoding \"UTF8\"")
        .SqlState("22021");
  }
  return catalog::SqlParameter(std::move(text));
}

}  // namespace

Status BindParameter(catalog::EmbeddedStatement& statement, size_t number, uint32_t type,
                     bool binary, std::optional<std::string_view> value) {
  if (!value.has_value()) {
    return statement.Bind(number, catalog::SqlParameter());
  }
  if (type == kByteaOid) {
    std::string bytes;
    if (!binary) {
      RETURN_IF_ERROR(AppendBinary(type, *value, &bytes));
    }
    return statement.Bind(number, catalog::SqlBytes{binary ? *value : std::string_view(bytes)});
  }
  std::string text(*value);
  if (binary && !IsText(type)) {
    ASSIGN_OR_RETURN(text, TextOfBinary(type, *value));
  }
  ASSIGN_OR_RETURN(const catalog::SqlParameter parameter, ParameterValue(type, std::move(text)));
  return statement.Bind(number, parameter);
}

}  // namespace sluice::server::pgwire
