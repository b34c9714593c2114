#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "catalog/postgres/postgres_messages_internal.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {
namespace {

// The span of the token that begins at byte `begin`.
Span TokenSpan(std::string_view sql, size_t begin) {
  for (const SqlToken& token : TokenizeSql(sql, Dialect::kPostgres)) {
    if (token.begin <= begin && begin < token.end) {
      return {static_cast<int64_t>(begin), static_cast<int64_t>(token.end)};
    }
  }
  return {static_cast<int64_t>(begin), static_cast<int64_t>(std::min(begin + 1, sql.size()))};
}

}  // namespace

Status PostgresError(std::string_view sqlstate, std::string message, std::string detail,
                     std::string hint, int64_t position, std::string_view sql, size_t user_text) {
  Status status = DatabaseError(sqlstate.empty() ? "XX000" : sqlstate, std::move(message))
                      .Detail(std::move(detail))
                      .Hint(std::move(hint));
  if (position <= 0 || sql.empty()) {
    return status;
  }
  size_t byte = 0;
  for (int64_t left = position - 1; byte < sql.size(); ++byte) {
    if (!ContinuesCharacter(sql[byte]) && left-- == 0) {
      break;
    }
  }
  if (byte < user_text) {
    return status;
  }
  const std::string_view user_sql = sql.substr(user_text);
  return std::move(status).At(TokenSpan(user_sql, std::min(byte - user_text, user_sql.size())));
}

std::string PostgresNotice(std::string_view severity, std::string_view message,
                           std::string_view detail, std::string_view hint) {
  std::string more(detail);
  if (!hint.empty()) {
    more += fmt::format("{}{}", more.empty() ? "" : "; ", hint);
  }
  return more.empty() ? fmt::format("{}: {}", severity, message)
                      : fmt::format("{}: {} ({})", severity, message, more);
}

}  // namespace sluice::catalog
