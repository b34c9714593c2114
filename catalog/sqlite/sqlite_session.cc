#include "catalog/sqlite/sqlite_session_internal.h"

#include <fmt/core.h>

#include <set>
#include <string>
#include <utility>

#include "catalog/result_table_internal.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {
namespace {

// What a select reads, as reported by SQLite while it prepares the select.
struct Reads {
  std::set<std::pair<std::string, std::string>> tables;  // "" if the schema is not reported
  std::set<std::string> views;                           // through which it reads the tables
  std::set<std::string> functions;
};

Result<Reads> ReadsOf(SqliteConnection& session, std::string_view select) {
  Reads reads;
  const auto note = [&reads](const SqliteConnection::Touched& touched) {
    if (touched.action == SQLITE_READ && touched.first != nullptr) {
      reads.tables.emplace(touched.schema == nullptr ? "" : touched.schema, touched.first);
    }
    if (touched.action == SQLITE_FUNCTION && touched.second != nullptr) {
      reads.functions.insert(touched.second);
    }
    if (touched.through != nullptr) {
      reads.views.insert(touched.through);
    }
  };
  RETURN_IF_ERROR(session.PrepareSelect(select, note).status());
  return reads;
}

Status Refused(std::string_view schema, std::string_view name) {
  if (schema == "temp") {
    return Unimplemented(fmt::format("'{}' is temporary: other connections read for this "
                                     "statement, and do not see it",
                                     name))
        .Hint("CREATE TABLE or VIEW without TEMPORARY, and DROP it afterwards");
  }
  return Unimplemented(fmt::format("'{}' is in the ATTACHed database '{}': other connections read "
                                   "for this statement, and do not see it",
                                   name, schema))
      .Hint(fmt::format("CREATE TABLE main.copy AS SELECT * FROM {}.{}, or open that file as the "
                        "source",
                        schema, name));
}

// A PRAGMA that changes the result of a select, and a query that tells whether the session has SET
// it.
struct ReadingPragma {
  std::string_view name;
  std::string_view query;
  int64_t usual;
};
constexpr ReadingPragma kReadingPragmas[] = {
    {"case_sensitive_like", "SELECT 'a' LIKE 'A'", 1},
    {"reverse_unordered_selects", "PRAGMA reverse_unordered_selects", 0},
    {"full_column_names", "PRAGMA full_column_names", 0},
    {"short_column_names", "PRAGMA short_column_names", 1},
    {"query_only", "PRAGMA query_only", 0},
};

}  // namespace

Status CheckNoSqliteTransaction(SqliteConnection& session) {
  if (session.Idle()) {
    return OkStatus();
  }
  return DatabaseError("25001",
                       "this statement cannot run inside a transaction: other connections "
                       "read for it, and ROLLBACK would not undo it")
      .Hint("COMMIT or ROLLBACK first");
}

Status CheckSqliteSession(SqliteConnection& session) {
  RETURN_IF_ERROR(CheckNoSqliteTransaction(session));
  for (const ReadingPragma& pragma : kReadingPragmas) {
    ASSIGN_OR_RETURN(const int64_t value, session.QueryInteger(pragma.query));
    if (value != pragma.usual) {
      return Unimplemented(fmt::format("the session has SET PRAGMA {}: other connections read and "
                                       "write for this statement, and do not have it",
                                       pragma.name))
          .Hint(fmt::format("PRAGMA {} = {}", pragma.name,
                            pragma.name == "case_sensitive_like" ? 0 : pragma.usual));
    }
  }
  return OkStatus();
}

Result<bool> HasMoreThanMain(SqliteConnection& session) {
  ASSIGN_OR_RETURN(
      const int64_t more,
      session.QueryInteger("SELECT (SELECT count(*) FROM pragma_database_list WHERE seq > 1) +"
                           " (SELECT count(*) FROM temp.sqlite_schema)"));
  return more > 0;
}

Status CheckNoSessionFunctions(SqliteConnection& session, std::string_view select) {
  const Result<Reads> reads = ReadsOf(session, select);
  if (!reads.ok()) {
    return OkStatus();  // describing the select reports the error
  }
  for (const char* function : {"last_insert_rowid", "changes", "total_changes"}) {
    if (reads->functions.contains(function)) {
      return Unimplemented(fmt::format("{}() reports on one connection's own statements, and "
                                       "others read for this statement",
                                       function))
          .Hint(fmt::format("SELECT {}() first, and write the number", function));
    }
  }
  return OkStatus();
}

Status CheckResultInMain(SqliteConnection& session, const TableName& result) {
  if (!result.schema.empty()) {
    ASSIGN_OR_RETURN(const SqlRows attached,
                     session.Query("SELECT 1 FROM pragma_database_list"
                                   " WHERE seq > 1 AND lower(name) = lower($1)",
                                   {result.schema}));
    return attached.empty()
               ? OkStatus()
               : Unimplemented(fmt::format("'{}' is an ATTACHed database: other connections write "
                                           "for this statement, and do not see it",
                                           result.schema))
                     .Hint("name a table of the main database, or open that file as the source");
  }
  ASSIGN_OR_RETURN(const SqlRows rows,
                   session.Query("SELECT type FROM temp.sqlite_schema WHERE type IN"
                                 " ('table', 'view') AND lower(name) = lower($1)",
                                 {result.name}));
  return rows.empty() ? OkStatus()
                      : FindTemporaryTable(TextCell(rows[0][0]), {"main", result.name});
}

Status CheckOnlyMain(SqliteConnection& session, std::string_view select) {
  ASSIGN_OR_RETURN(const Reads reads, ReadsOf(session, select));
  for (const auto& [schema, table] : reads.tables) {
    if (!schema.empty()) {
      if (schema != "main") {
        return Refused(schema, table);
      }
      continue;
    }
    // No column of the table is read (count(*)), and SQLite does not report its schema: the search
    // order is temp, then main, then the others.
    ASSIGN_OR_RETURN(const SqlRows rows,
                     session.Query("SELECT l.schema FROM pragma_table_list AS l JOIN"
                                   " pragma_database_list AS d ON d.name = l.schema"
                                   " WHERE lower(l.name) = lower($1)"
                                   " ORDER BY d.seq <> 1, d.seq LIMIT 1",
                                   {table}));
    if (!rows.empty() && TextCell(rows[0][0]) != "main") {
      return Refused(TextCell(rows[0][0]), table);
    }
  }
  for (const std::string& view : reads.views) {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     session.Query("SELECT 1 FROM temp.sqlite_schema WHERE type = 'view' AND"
                                   " lower(name) = lower($1)",
                                   {view}));
    if (!rows.empty()) {
      return Refused("temp", view);
    }
  }
  return OkStatus();
}

}  // namespace sluice::catalog
