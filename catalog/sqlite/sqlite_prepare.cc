#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/letter_case.h"
#include "catalog/embedded_memory.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/sqlstate.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

// Statements are prepared here, and SQLite asks meanwhile about all that they do.
namespace sluice::catalog {

bool IsTableOfSluice(std::string_view table) {
  return LowerAscii(table).starts_with("sluice_");
}

void SqliteConnection::Watch() {
  sqlite3_set_authorizer(handle_, Ask, this);
}

int SqliteConnection::Ask(void* connection, int action, const char* first, const char* second,
                          const char* schema, const char* through) {
  auto& self = *static_cast<SqliteConnection*>(connection);
  const bool changes =
      action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE;
  if (changes && through != nullptr && IsTableOfSluice(first)) {
    self.refused_ = DatabaseError(
        "42501", fmt::format("permission denied for table {}: trigger {} changes rows that are "
                             "Sluice's own",
                             first, through));
    return SQLITE_DENY;
  }
  if (self.select_ == nullptr) {
    return SQLITE_OK;
  }
  if (action == SQLITE_PRAGMA && second != nullptr) {  // SQLite runs many while it prepares them
    self.refused_ = InvalidArgument(fmt::format("expected a SELECT, not PRAGMA {}", first));
    return SQLITE_DENY;
  }
  if (*self.select_) {
    (*self.select_)({action, first, second, schema, through});
  }
  return SQLITE_OK;
}

Result<SqliteStatement> SqliteConnection::PrepareSelect(std::string_view select,
                                                        const OnTouched& on_touched) {
  Watch();
  select_ = &on_touched;
  Result<SqliteStatement> statement = PrepareWhole(select);
  select_ = nullptr;
  return statement;
}

Result<SqliteStatement> SqliteConnection::PrepareWhole(std::string_view sql) {
  ASSIGN_OR_RETURN(SqliteStatement statement, Prepare(sql));
  if (sqlite3_bind_parameter_count(statement.get()) > 0) {
    const char* const name = sqlite3_bind_parameter_name(statement.get(), 1);
    return InvalidArgument(
               fmt::format("the parameter {} has no value", name == nullptr ? "?" : name))
        .SqlState("42P02")
        .Hint("write the value in its place, or in quotes if it is a text");
  }
  return statement;
}

Result<SqliteStatement> SqliteConnection::Prepare(std::string_view sql) {
  if (stop_.stop_requested()) {
    return Cancelled("the statement was cancelled");
  }
  if (sql.find('\0') != std::string_view::npos) {
    return SyntaxError("a statement cannot hold a NULL byte")
        .At({static_cast<int64_t>(sql.find('\0')), static_cast<int64_t>(sql.find('\0')) + 1});
  }
  refused_ = OkStatus();
  const std::string text(sql);  // SQLite needs a terminator
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  if (text.size() > static_cast<size_t>(sqlite3_limit(handle_, SQLITE_LIMIT_SQL_LENGTH, -1))) {
    return DatabaseError("54000", "the statement is too long for SQLite");
  }
  int code = SQLITE_OK;
  {
    std::optional<EndsAllocations> ends;
    if (stop_.stop_possible()) {
      ends.emplace([this] { return stop_.stop_requested(); });
    }
    code =
        sqlite3_prepare_v2(handle_, text.c_str(), static_cast<int>(text.size()) + 1, &raw, &rest);
  }
  SqliteStatement statement(raw);
  if (code != SQLITE_OK) {
    return LastError(sql);
  }
  if (statement == nullptr) {
    return SyntaxError("there is no statement");
  }
  const auto used = static_cast<size_t>(rest - text.c_str());
  const std::vector<SqlToken> more = TokenizeSql(sql.substr(used), Dialect::kSqlite);
  for (const SqlToken& token : more) {
    if (sql[used + token.begin] != ';') {
      return SyntaxError("expected one statement, found a second one")
          .At({static_cast<int64_t>(used + token.begin), static_cast<int64_t>(used + token.end)});
    }
  }
  return statement;
}

}  // namespace sluice::catalog
