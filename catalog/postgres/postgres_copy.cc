#include "catalog/postgres/postgres_copy_internal.h"

#include <fmt/core.h>

#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "catalog/postgres/postgres_types_internal.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/timestamp_text.h"

namespace sluice::catalog {
namespace {

// COPY's text format; measured to be as fast as the binary one, and it fits every type.
void AppendText(std::string_view text, std::string* out) {
  for (const char c : text) {
    switch (c) {
      case '\\':
        *out += "\\\\";
        break;
      case '\n':
        *out += "\\n";
        break;
      case '\r':
        *out += "\\r";
        break;
      case '\t':
        *out += "\\t";
        break;
      default:
        *out += c;
    }
  }
}

void AppendHex(std::string_view bytes, std::string* out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  *out += "\\\\x";
  for (const char c : bytes) {
    *out += kDigits[static_cast<unsigned char>(c) >> 4U];
    *out += kDigits[static_cast<unsigned char>(c) & 0xFU];
  }
}

void AppendCell(const RowBatch::Column& column, size_t row, std::string* out) {
  if (column.null[row] != 0) {
    *out += "\\N";
    return;
  }
  switch (column.TypeAt(row)) {
    case DataType::kBool:
      *out += column.int64s[row] != 0 ? 't' : 'f';
      break;
    case DataType::kInt64:
      fmt::format_to(std::back_inserter(*out), "{}", column.int64s[row]);
      break;
    case DataType::kDouble:
      *out += FormatDouble(column.doubles[row]);
      break;
    case DataType::kTimestamp:
      // The session's TimeZone is the user's; a timestamp without time zone ignores the suffix.
      *out += TimestampLiteral(column.int64s[row]);
      if (out->back() != 'y' && out->back() != 'C') {  // not infinity, nor before Christ
        *out += "+00";
      }
      break;
    case DataType::kText:
      AppendText(column.texts[row], out);
      break;
    case DataType::kBytes:
      AppendHex(column.texts[row], out);
      break;
  }
}

// A declaration as DescribeDeclarations makes it: the type, and the collation or "".
std::pair<std::string, std::string> SplitCollation(const std::string& declaration) {
  for (const SqlToken& token : TokenizeSql(declaration, Dialect::kPostgres)) {
    if (token.kind == SqlToken::Kind::kWord && token.begin > 0 &&
        std::string_view(declaration).substr(token.begin, token.end - token.begin) == "COLLATE") {
      return {declaration.substr(0, token.begin - 1), declaration.substr(token.end + 1)};
    }
  }
  return {declaration, ""};
}

}  // namespace

std::string CopyText(const RowBatch& batch) {
  std::string text;
  for (size_t row = 0; row < batch.rows; ++row) {
    for (size_t i = 0; i < batch.columns.size(); ++i) {
      if (i > 0) {
        text += '\t';
      }
      AppendCell(batch.columns[i], row, &text);
    }
    text += '\n';
  }
  return text;
}

Status CopyRows(PostgresConnection& connection, const std::string& copy, std::string_view text,
                std::string* context) {
  PGconn* handle = connection.handle();
  RETURN_IF_ERROR(connection.CheckStop());
  const bool sent = PQsendQuery(handle, copy.c_str()) != 0;
  const PostgresResult begun = sent ? connection.Await() : nullptr;
  if (PQresultStatus(begun.get()) != PGRES_COPY_IN) {
    Status refused = connection.ErrorOf(begun.get(), "");
    connection.Drain().ok();  // only the error itself is of interest
    return refused;
  }
  // libpq blocks while the server accepts no more data: for a trigger, or for a lock.
  const std::stop_callback cancel(connection.stop(), [&connection] { connection.Cancel(); });
  constexpr size_t kPiece = size_t{1} << 20;  // libpq buffers what it could not send yet
  for (size_t at = 0; at < text.size(); at += kPiece) {
    const std::string_view piece = text.substr(at, kPiece);
    if (PQputCopyData(handle, piece.data(), static_cast<int>(piece.size())) != 1) {
      return connection.ConnectionLost();
    }
  }
  if (PQputCopyEnd(handle, nullptr) != 1) {
    return connection.ConnectionLost();
  }
  Status outcome;
  while (const PostgresResult result = connection.Await()) {
    if (outcome.ok() && PQresultStatus(result.get()) != PGRES_COMMAND_OK) {
      outcome = connection.ErrorOf(result.get(), "");
      const char* const place = PQresultErrorField(result.get(), PG_DIAG_CONTEXT);
      if (context != nullptr && place != nullptr) {
        *context = place;
      }
    }
    if (PQstatus(handle) != CONNECTION_OK) {
      break;
    }
  }
  return outcome;
}

Result<std::string> PostgresTableDefinition(PostgresConnection& connection,
                                            const std::string& quoted_table, const Schema& schema) {
  std::string columns;
  for (const ColumnInfo& column : schema.columns) {
    std::string type(PostgresTypeName(column.type));
    const auto [wanted, collation] =
        SplitCollation(column.declaration.value_or(column.database_type));
    if (!wanted.empty() && wanted != type) {
      // to_regtype accepts only the name of a type, with its modifier, so the text cannot contain
      // anything else.
      ASSIGN_OR_RETURN(
          const PostgresResult known,
          connection.Ask("SELECT pg_catalog.to_regtype($1)::pg_catalog.oid", {wanted}));
      const bool exists = PQgetisnull(known.get(), 0, 0) == 0;
      if (exists && (column.declaration.has_value() || TypeOfOid(static_cast<Oid>(PostgresInteger(
                                                           known.get(), 0, 0))) == column.type)) {
        type = wanted;
      }
    }
    if (!collation.empty()) {  // likewise, to_regcollation accepts only a name
      ASSIGN_OR_RETURN(
          const PostgresResult known,
          connection.Ask("SELECT pg_catalog.to_regcollation($1)::pg_catalog.oid", {collation}));
      type += PQgetisnull(known.get(), 0, 0) == 0 ? " COLLATE " + collation : "";
    }
    columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", QuoteName(column.name), type);
  }
  return fmt::format("CREATE TABLE {} ({})", quoted_table, columns);
}

}  // namespace sluice::catalog
