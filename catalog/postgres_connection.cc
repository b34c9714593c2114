#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/log.h"
#include "catalog/postgres_connection_internal.h"
#include "catalog/postgres_types_internal.h"
#include "catalog/sqlstate.h"

namespace sluice::catalog {
namespace {

// Where the token that begins at byte `begin` ends.
Span TokenSpan(std::string_view sql, size_t begin) {
  for (const SqlToken& token : TokenizeSql(sql, Dialect::kPostgres)) {
    if (token.begin <= begin && begin < token.end) {
      return {static_cast<int64_t>(begin), static_cast<int64_t>(token.end)};
    }
  }
  return {static_cast<int64_t>(begin), static_cast<int64_t>(std::min(begin + 1, sql.size()))};
}

std::string Field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

}  // namespace

Status PostgresError(std::string_view sqlstate, std::string message, std::string detail,
                     std::string hint, int64_t position, std::string_view sql, size_t user_text) {
  Status status = DatabaseError(sqlstate.empty() ? "XX000" : sqlstate, std::move(message))
                      .Detail(std::move(detail))
                      .Hint(std::move(hint));
  if (position <= 0) {
    return status;
  }
  size_t byte = 0;
  for (int64_t left = position - 1; byte < sql.size(); ++byte) {
    if ((static_cast<unsigned char>(sql[byte]) & 0xC0U) != 0x80U && left-- == 0) {
      break;
    }
  }
  if (byte < user_text) {
    return status;
  }
  const std::string_view user_sql = sql.substr(user_text);
  return std::move(status).At(TokenSpan(user_sql, std::min(byte - user_text, user_sql.size())));
}

PostgresConnection::~PostgresConnection() {
  PQfinish(handle_);
}

bool PostgresConnection::Reusable() const {
  return PQstatus(handle_) == CONNECTION_OK && PQtransactionStatus(handle_) == PQTRANS_IDLE;
}

bool PostgresConnection::InTransaction() const {
  const PGTransactionStatusType status = PQtransactionStatus(handle_);
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

bool PostgresConnection::TransactionFailed() const {
  return failed_on_wire_ || PQtransactionStatus(handle_) == PQTRANS_INERROR;
}

void PostgresConnection::Rollback() {
  failed_on_wire_ = false;
  if (!InTransaction()) {
    return;
  }
  const Status ended = Run("ROLLBACK");
  if (!ended.ok()) {
    log::Debug("rollback failed error=\"{}\"", ended.message());
  }
}

Result<PostgresResult> PostgresConnection::Ask(std::string_view sql, size_t user_text) {
  if (sql.find('\0') != std::string_view::npos) {
    return SyntaxError("a statement cannot hold a NULL byte");
  }
  PostgresResult result(
      PQexecParams(handle_, std::string(sql).c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0));
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    return ErrorOf(result.get(), sql, user_text);
  }
  return result;
}

Result<PostgresResult> PostgresConnection::Ask(std::string_view sql,
                                               const std::vector<SqlParameter>& parameters) {
  constexpr Oid kBigint = 20;
  constexpr Oid kDoublePrecision = 701;
  constexpr Oid kBytea = 17;
  constexpr Oid kAsTheStatementSays = 0;
  std::vector<Oid> types;
  std::vector<std::string> texts(parameters.size());
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const SqlParameter& parameter = parameters[i];
    Oid type = kAsTheStatementSays;
    const char* value = nullptr;
    int length = 0;
    int format = 0;
    if (const auto* integer = std::get_if<int64_t>(&parameter)) {
      type = kBigint;
      texts[i] = fmt::format("{}", *integer);
      value = texts[i].c_str();
    } else if (const auto* number = std::get_if<double>(&parameter)) {
      type = kDoublePrecision;
      texts[i] = FormatDouble(*number);
      value = texts[i].c_str();
    } else if (const auto* text = std::get_if<std::string>(&parameter)) {
      value = text->c_str();
      if (text->find('\0') != std::string::npos) {
        return InvalidArgument("PostgreSQL cannot store text with a NULL byte").SqlState("22021");
      }
    } else if (const auto* bytes = std::get_if<SqlBytes>(&parameter)) {
      type = kBytea;
      value = bytes->bytes.empty() ? "" : bytes->bytes.data();
      length = static_cast<int>(bytes->bytes.size());
      format = 1;
    }
    types.push_back(type);
    values.push_back(value);
    lengths.push_back(length);
    formats.push_back(format);
  }
  PostgresResult result(PQexecParams(handle_, std::string(sql).c_str(),
                                     static_cast<int>(parameters.size()), types.data(),
                                     values.data(), lengths.data(), formats.data(), 0));
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    return ErrorOf(result.get(), sql);
  }
  return result;
}

Status PostgresConnection::Run(const std::string& sql) {
  const PostgresResult result(PQexec(handle_, sql.c_str()));
  const ExecStatusType status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    return ErrorOf(result.get(), "");
  }
  return OkStatus();
}

Result<SqlRows> PostgresConnection::Query(std::string_view sql,
                                          const std::vector<SqlParameter>& parameters) {
  ASSIGN_OR_RETURN(const PostgresResult result, Ask(sql, parameters));
  SqlRows rows(static_cast<size_t>(PQntuples(result.get())));
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int i = 0; i < PQnfields(result.get()); ++i) {
      rows[row].push_back(CellFromText(result.get(), static_cast<int>(row), i));
    }
  }
  return rows;
}

Status PostgresConnection::ErrorOf(const PGresult* result, std::string_view sql,
                                   size_t user_text) const {
  const std::string sqlstate = Field(result, PG_DIAG_SQLSTATE);
  if (sqlstate.empty()) {
    if (PQstatus(handle_) == CONNECTION_BAD) {
      return ConnectionLost();
    }
    return DatabaseError("XX000", fmt::format("PostgreSQL: {}", PQerrorMessage(handle_)));
  }
  const std::string position = Field(result, PG_DIAG_STATEMENT_POSITION);
  int64_t character = 0;
  std::from_chars(position.data(), position.data() + position.size(), character);
  return PostgresError(sqlstate, Field(result, PG_DIAG_MESSAGE_PRIMARY),
                       Field(result, PG_DIAG_MESSAGE_DETAIL), Field(result, PG_DIAG_MESSAGE_HINT),
                       character, sql, user_text);
}

Status PostgresConnection::ConnectionLost() const {
  const char* host = PQhost(handle_);
  const char* port = PQport(handle_);
  return DatabaseError("08006", fmt::format("the connection to PostgreSQL at {}:{} was lost",
                                            host == nullptr || *host == '\0' ? "localhost" : host,
                                            port == nullptr ? "" : port));
}

Status PostgresConnection::Drain() {
  Status status;
  while (PostgresResult result{PQgetResult(handle_)}) {
    const ExecStatusType code = PQresultStatus(result.get());
    if (code == PGRES_COPY_OUT || code == PGRES_COPY_BOTH) {
      // libpq repeats this result until the data is read.
      char* row = nullptr;
      while (PQgetCopyData(handle_, &row, 0) > 0) {
        PQfreemem(row);
      }
    } else if (code == PGRES_COPY_IN) {
      PQputCopyEnd(handle_, "given up");
    } else if (code != PGRES_COMMAND_OK && code != PGRES_TUPLES_OK && code != PGRES_SINGLE_TUPLE) {
      status.Add(ErrorOf(result.get(), ""));
    }
    if (PQstatus(handle_) != CONNECTION_OK) {
      break;
    }
  }
  return status;
}

void PostgresConnection::Cancel() const {
  PGcancel* cancel = PQgetCancel(handle_);
  if (cancel == nullptr) {
    return;  // there is no connection any more, so there is nothing to cancel
  }
  char error[256] = "";
  if (PQcancel(cancel, error, sizeof(error)) == 0) {
    log::Warn("cannot send a cancel request error=\"{}\"", error);
  }
  PQfreeCancel(cancel);
}

std::string_view PostgresText(const PGresult* result, int row, int column) {
  return {PQgetvalue(result, row, column), static_cast<size_t>(PQgetlength(result, row, column))};
}

int64_t PostgresInteger(const PGresult* result, int row, int column) {
  const std::string_view text = PostgresText(result, row, column);
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    double real = 0;  // "1e+06" of float columns such as reltuples
    std::from_chars(text.data(), text.data() + text.size(), real);
    number = static_cast<int64_t>(real);
  }
  return number;
}

}  // namespace sluice::catalog
