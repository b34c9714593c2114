#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "catalog/sql/sql_text.h"
#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/column_types.h"
#include "server/pgwire/sql/parameters.h"
#include "server/pgwire/values.h"
#include "tests/fuzz/target.h"

// Values from a client, and texts from a database, as any type: a value survives conversion and
// back, and an expression stays one expression.
namespace sluice::server::pgwire {
namespace {

[[noreturn]] void Broken(const char* what, uint32_t oid) {
  std::fprintf(stderr, "%s (type %u)\n", what, oid);
  std::abort();
}

// Checks that it is one pair of parentheses, and that the value stays inside its quotes.
void CheckExpression(const std::string& expression, uint32_t oid) {
  const auto tokens = catalog::TokenizeSql(expression, catalog::Dialect::kPostgres);
  if (tokens.size() < 3 || expression[tokens.front().begin] != '(' ||
      expression[tokens.back().begin] != ')' || tokens.back().end != expression.size()) {
    Broken("an expression that is not closed", oid);
  }
  for (size_t i = 1; i + 1 < tokens.size(); ++i) {
    const bool string = tokens[i].kind == catalog::SqlToken::Kind::kString;
    if (string != (i == 1) || tokens[i].depth < 1) {
      Broken("an expression of several parts", oid);
    }
  }
}

void CheckBytes(uint32_t oid, std::string_view bytes) {
  const BoundParameter parameter = {oid, true, bytes};
  const auto expression = ParameterLiteral(parameter);
  if (expression.ok()) {
    CheckExpression(*expression, oid);
  }
  static_cast<void>(ParameterAttribute(parameter, Span{0, 1}).ok());
  const auto text = TextOfBinary(oid, bytes);
  if (!text.ok()) {
    return;
  }
  std::string once;
  if (!AppendBinary(oid, *text, &once).ok()) {
    Broken("the text of a value is not read back", oid);
  }
  const auto again = TextOfBinary(oid, once);
  if (!again.ok() || *again != *text) {
    Broken("a value comes back as another", oid);
  }
}

void CheckText(uint32_t oid, std::string_view text) {
  const auto expression = ParameterLiteral({oid, false, text});
  if (expression.ok()) {
    CheckExpression(*expression, oid);
  }
  static_cast<void>(ParameterAttribute({oid, false, text}, Span{0, 1}).ok());
  std::string bytes;
  if (!AppendBinary(oid, text, &bytes).ok()) {
    return;
  }
  const auto back = TextOfBinary(oid, bytes);
  std::string again;
  if (!back.ok() || !AppendBinary(oid, *back, &again).ok() || again != bytes) {
    Broken("what was sent is not what is read", oid);
  }
  RowBatch::Column column;
  column.null = {0};
  column.texts = {text};
  std::string field;
  const ColumnType type = {oid, -1, -1};
  if (!AppendCell(column, 0, type, true, &field).ok() || field.substr(4) != bytes) {
    Broken("a cell is another value", oid);
  }
}

}  // namespace
}  // namespace sluice::server::pgwire

// The first byte is the type.
FUZZ_TARGET(wire_values) {
  using namespace sluice::server::pgwire;  // NOLINT
  static const std::vector<uint32_t> kTypes = {
      kBoolOid,    kByteaOid,   kCharOid,      kNameOid,
      kInt8Oid,    kInt2Oid,    kInt4Oid,      kTextOid,
      kOidOid,     kJsonOid,    kFloat4Oid,    kFloat8Oid,
      kVarcharOid, kDateOid,    kTimestampOid, kTimestamptzOid,
      kNumericOid, kUuidOid,    kJsonbOid,     1000,
      1001,        1005,        1007,          1009,
      1016,        1021,        1022,          1182,
      1115,        1231,        2951,          kTimeOid,
      kTimetzOid,  kIntervalOid};
  if (size == 0) {
    return 0;
  }
  const uint32_t oid = kTypes[data[0] % kTypes.size()];
  const std::string_view value(reinterpret_cast<const char*>(data) + 1, size - 1);
  CheckBytes(oid, value);
  CheckText(oid, value);
  static_cast<void>(ParameterLiteral({0, false, value}).ok());
  static_cast<void>(ParameterAttribute({0, false, value}, {0, 1}).ok());
  const sluice::ColumnInfo column = {"c", sluice::DataType::kText, std::string(value)};
  static_cast<void>(ColumnTypeOf(column, sluice::catalog::Dialect::kPostgres));
  return 0;
}
