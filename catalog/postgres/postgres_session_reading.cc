#include <fmt/core.h>

#include "catalog/postgres/postgres_session_internal.h"
#include "catalog/sql/sql_text.h"

// What a statement that reads its rows through the session's own connection asks and begins there.
namespace sluice::catalog {
namespace {

// In milliseconds, in whatever unit it was SET.
constexpr std::string_view kTimeout =
    "SELECT CASE WHEN pg_catalog.current_setting('statement_timeout') OPERATOR(pg_catalog.=) '0'"
    " THEN '0' ELSE (SELECT s.setting FROM pg_catalog.pg_settings AS s"  // which takes 1 ms
    " WHERE s.name OPERATOR(pg_catalog.=) 'statement_timeout') END";

std::chrono::milliseconds TimeoutIn(const PGresult* result, int column) {
  return std::chrono::milliseconds(
      PQgetisnull(result, 0, column) == 0 ? PostgresInteger(result, 0, column) : 0);
}

// The first answer of a session that is also its client's: one that does not repeat `key` is to
// something that the client has sent, who could say that it acts as anybody.
Status CheckAnswers(const PGresult* first, const std::string& key) {
  return PQntuples(first) > 0 && PQnfields(first) > 0 && PostgresText(first, 0, 0) == key
             ? OkStatus()
             : Status(Code::kUnavailable, "the session answers something else than it was asked")
                   .SqlState("08P01");
}

// Rows come in the order of the table, regardless of other readers at the moment.
constexpr std::string_view kBeginReading =
    "BEGIN READ ONLY; SET LOCAL synchronize_seqscans = off;"
    " SET LOCAL max_parallel_workers_per_gather = 0";

}  // namespace

Result<std::chrono::milliseconds> StatementTimeout(PostgresConnection& session) {
  ASSIGN_OR_RETURN(const PostgresResult timeout, session.Ask(kTimeout));
  return TimeoutIn(timeout.get(), 0);
}

std::string BeginReadingSession() {
  return std::string(kBeginReading);
}

Result<DataSource::SettingValues> AskForSettings(PostgresConnection& session,
                                                 const std::vector<std::string>& names,
                                                 bool begins_reading,
                                                 std::chrono::milliseconds* statement_timeout,
                                                 std::string* acts_as) {
  std::string list;
  for (const std::string& name : names) {
    list += fmt::format("{}({})", list.empty() ? "" : ", ", QuoteText(name, Dialect::kPostgres));
  }
  const std::string key = RandomSuffix();
  const std::string question = fmt::format(
      "SELECT '{}'::pg_catalog.text, ({}), current_user::pg_catalog.text, NULL UNION ALL"
      " SELECT NULL, NULL, n, v FROM"
      " (SELECT n, pg_catalog.current_setting(n, true) AS v FROM (VALUES {}) AS u(n)) AS s"
      " WHERE v OPERATOR(pg_catalog.<>) ''",
      key, kTimeout, list);
  const bool reads = begins_reading && !session.InTransaction();
  ASSIGN_OR_RETURN(const PostgresResult found,
                   reads ? session.BeginReading(fmt::format("{}; {}", kBeginReading, question))
                         : session.Ask(question));
  RETURN_IF_ERROR(CheckAnswers(found.get(), key));
  *statement_timeout = TimeoutIn(found.get(), 1);
  *acts_as = PostgresText(found.get(), 0, 2);
  DataSource::SettingValues values;
  for (int i = 1; i < PQntuples(found.get()); ++i) {
    values.emplace_back(PostgresText(found.get(), i, 2), PostgresText(found.get(), i, 3));
  }
  return values;
}

Status AskForRole(PostgresConnection& session, std::string* acts_as,
                  std::chrono::milliseconds* statement_timeout) {
  const std::string key = RandomSuffix();
  ASSIGN_OR_RETURN(const PostgresResult found,
                   session.Ask(fmt::format("SELECT '{}', ({}), current_user", key, kTimeout)));
  RETURN_IF_ERROR(CheckAnswers(found.get(), key));
  *statement_timeout = TimeoutIn(found.get(), 1);
  *acts_as = PostgresText(found.get(), 0, 2);
  return OkStatus();
}

}  // namespace sluice::catalog
