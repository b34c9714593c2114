#include "base/letter_case.h"
#include "catalog/postgres/postgres_session_internal.h"

#include <fmt/core.h>

#include <algorithm>

#include "catalog/dataset.pb.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {
namespace {

// Not replayed, because every connection of ours sets them itself: the encoding, whatever may end
// or delay a long transaction, and how it begins (set by BeginReading).
constexpr std::string_view kOurOwn[] = {"client_encoding",
                                        "transaction_timeout",
                                        "idle_in_transaction_session_timeout",
                                        "idle_session_timeout",
                                        "client_connection_check_interval",
                                        "tcp_keepalives_idle",
                                        "tcp_keepalives_interval",
                                        "tcp_keepalives_count",
                                        "default_transaction_isolation",
                                        "default_transaction_deferrable",
                                        "transaction_isolation",
                                        "transaction_deferrable",
                                        "transaction_read_only",
                                        "exit_on_error",
                                        "role",
                                        "session_authorization"};

// Every name is schema-qualified, because the user controls search_path and its operators.
constexpr std::string_view kCapture =
    "SELECT 1, s.name, s.setting FROM pg_catalog.pg_settings AS s"
    " WHERE s.source OPERATOR(pg_catalog.=) 'session' OR"
    // What the client asked for when it connected, and what is set for the role or the database:
    // connections of ours were made without the one, and perhaps before the other.
    " s.source OPERATOR(pg_catalog.=) ANY"
    " ('{client,user,database,\"database user\"}'::pg_catalog.text[])"
    " AND s.context OPERATOR(pg_catalog.=) 'user'"
    " AND s.name OPERATOR(pg_catalog.<>) ALL "
    "('{client_encoding,application_name}'::pg_catalog.text[])"
    " UNION ALL SELECT 2, 'session_authorization', session_user::pg_catalog.text"
    " UNION ALL SELECT 3, 'role', pg_catalog.current_setting('role')"
    // Connections of the login begin with another role than its own.
    " UNION ALL SELECT 5, 'role', 'yes' FROM pg_catalog.pg_db_role_setting AS s,"
    " pg_catalog.unnest(s.setconfig) AS c"
    " WHERE pg_catalog.starts_with(pg_catalog.lower(c), 'role=')"
    " UNION ALL SELECT 4, 'temporary', 'yes' FROM pg_catalog.pg_class AS c"
    " WHERE c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()"
    " UNION ALL SELECT 4, 'temporary', 'yes' FROM pg_catalog.pg_type AS t"
    " WHERE t.typnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()"
    " UNION ALL SELECT 4, 'temporary', 'yes' FROM pg_catalog.pg_proc AS p"
    " WHERE p.pronamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema()";

// Describes what was found in the temporary schema.
constexpr std::string_view kTemporaryInView =
    "SELECT CASE WHEN d.refclassid OPERATOR(pg_catalog.=) "
    "'pg_catalog.pg_class'::pg_catalog.regclass"
    " THEN (SELECT CASE WHEN c.relkind OPERATOR(pg_catalog.=) 'v' THEN 'view '"
    " WHEN c.relkind OPERATOR(pg_catalog.=) 'S' THEN 'sequence ' ELSE 'table ' END"
    " OPERATOR(pg_catalog.||) c.relname FROM pg_catalog.pg_class AS c"
    " WHERE c.oid OPERATOR(pg_catalog.=) d.refobjid AND"
    " c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema() AND"
    " c.oid OPERATOR(pg_catalog.<>) r.ev_class)"
    " WHEN d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_type'::pg_catalog.regclass"
    " THEN (SELECT 'type ' OPERATOR(pg_catalog.||) t.typname FROM pg_catalog.pg_type AS t"
    " WHERE t.oid OPERATOR(pg_catalog.=) d.refobjid AND"
    " t.typnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema())"
    " WHEN d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass"
    " THEN (SELECT 'function ' OPERATOR(pg_catalog.||) p.proname FROM pg_catalog.pg_proc AS p"
    " WHERE p.oid OPERATOR(pg_catalog.=) d.refobjid AND"
    " (p.pronamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema() OR EXISTS ("
    "SELECT FROM pg_catalog.pg_class AS c"
    " WHERE c.relnamespace OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema() AND"
    " c.oid OPERATOR(pg_catalog.<>) r.ev_class AND pg_catalog.strpos(pg_catalog.lower(p.prosrc),"
    " pg_catalog.lower(c.relname::pg_catalog.text)) OPERATOR(pg_catalog.>) 0)))"
    " END FROM pg_catalog.pg_rewrite AS r JOIN pg_catalog.pg_depend AS d"
    " ON d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND"
    " d.objid OPERATOR(pg_catalog.=) r.oid"
    " WHERE r.ev_class OPERATOR(pg_catalog.=) $1::pg_catalog.regclass";

bool IsOurs(std::string_view name) {
  return std::find(std::begin(kOurOwn), std::end(kOurOwn), name) != std::end(kOurOwn);
}

// Settings on which our own reading of the text, or of the cells, depends.
Status CheckReadable(const SessionSettings& settings) {
  for (const auto& [name, value] : settings) {
    const bool strings = name == "standard_conforming_strings" && value != "on";
    const bool encoding = name == "client_encoding" && value != "UTF8";
    if (strings || encoding) {
      return Unimplemented(
                 fmt::format("the session has SET {} to {}: what a select means then is not "
                             "understood here",
                             name, value))
          .Hint(fmt::format("RESET {}", name));
    }
  }
  return OkStatus();
}

// Rolls back the transaction, also when the statement was cancelled.
class RolledBack {
 public:
  explicit RolledBack(PostgresConnection& connection) : connection_(connection) {}
  ~RolledBack() { connection_.Rollback(); }
  RolledBack(const RolledBack&) = delete;
  RolledBack& operator=(const RolledBack&) = delete;

 private:
  PostgresConnection& connection_;
};

}  // namespace

Result<CapturedSession> CaptureSession(PostgresConnection& session, const SettingNames& names) {
  CapturedSession captured;
  const RolledBack rolled_back(session);
  RETURN_IF_ERROR(session.Begin("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"));
  ASSIGN_OR_RETURN(captured.statement_timeout, StatementTimeout(session));
  ASSIGN_OR_RETURN(const PostgresResult listed, session.Ask(kCapture));
  SessionSettings all;
  std::string authorization;
  std::string role;
  bool begins_with_role = false;
  for (int row = 0; row < PQntuples(listed.get()); ++row) {
    std::string name(PostgresText(listed.get(), row, 1));
    std::string value(PostgresText(listed.get(), row, 2));
    switch (PostgresInteger(listed.get(), row, 0)) {
      case 2:
        authorization = std::move(value);
        break;
      case 3:
        role = std::move(value);
        break;
      case 4:
        captured.has_temporary = true;
        break;
      case 5:
        begins_with_role = true;
        break;
      default:
        all.emplace_back(std::move(name), std::move(value));
    }
  }
  RETURN_IF_ERROR(CheckReadable(all));
  std::set<std::string> wanted = names.names();
  for (auto& [name, value] : all) {
    wanted.erase(name);
    if (!IsOurs(name)) {
      captured.settings.emplace_back(name, std::move(value));
    }
  }
  ASSIGN_OR_RETURN(std::set<std::string> in_database, SettingsNamedInDatabase(session));
  wanted.merge(in_database);
  std::string list;
  for (const std::string& name : wanted) {
    if (IsDottedName(name)) {
      list += fmt::format("{}{}", list.empty() ? "" : ",", name);
    }
  }
  if (!list.empty()) {
    ASSIGN_OR_RETURN(
        const PostgresResult values,
        session.Ask("SELECT n, v FROM (SELECT n, pg_catalog.current_setting(n, true) AS v"
                    " FROM pg_catalog.unnest(pg_catalog.string_to_array($1, ',')) AS u(n)) AS s"
                    " WHERE v IS NOT NULL AND NOT EXISTS (SELECT FROM pg_catalog.pg_settings AS p"
                    " WHERE p.name OPERATOR(pg_catalog.=) pg_catalog.lower(s.n)"
                    " AND p.context OPERATOR(pg_catalog.<>) 'user')",
                    {list}));
    for (int row = 0; row < PQntuples(values.get()); ++row) {
      captured.settings.emplace_back(PostgresText(values.get(), row, 0),
                                     PostgresText(values.get(), row, 1));
    }
  }
  if (authorization != PQuser(session.handle())) {
    captured.settings.emplace_back("session_authorization", authorization);
  }
  if (role != "none" || begins_with_role) {
    captured.settings.emplace_back("role", role);
  }
  return captured;
}

Status CheckReadableAsText(PostgresConnection& connection, std::string_view purpose) {
  ASSIGN_OR_RETURN(const PostgresResult settings,
                   connection.Ask("SELECT n, pg_catalog.current_setting(n) FROM (VALUES"
                                  " ('DateStyle'::pg_catalog.text), ('IntervalStyle'),"
                                  " ('bytea_output'), ('extra_float_digits')) AS v(n)"));
  for (int row = 0; row < PQntuples(settings.get()); ++row) {
    const std::string_view name = PostgresText(settings.get(), row, 0);
    const std::string_view value = PostgresText(settings.get(), row, 1);
    const bool dates = name == "DateStyle" && !value.starts_with("ISO");
    const bool intervals = name == "IntervalStyle" && value != "postgres";
    const bool bytes = name == "bytea_output" && value != "hex";
    const bool digits = name == "extra_float_digits" && (value == "0" || value.front() == '-');
    if (dates || intervals || bytes || digits) {
      return Unimplemented(fmt::format("the session's {} is {}: {}", name, value, purpose))
          .Hint(fmt::format(
              "SET {} = {}, or GRANT USAGE, CREATE ON SCHEMA sluice_stage to the role: its "
              "rows are staged then",
              name,
              dates       ? "ISO"
              : intervals ? "postgres"
              : bytes     ? "hex"
                          : "1"));
    }
  }
  return OkStatus();
}

bool OnlyText(const PostgresConnection& connection) {
  return PQsslInUse(connection.handle()) != 0 || PQgssEncInUse(connection.handle()) != 0;
}

Status ReplaySession(PostgresConnection& connection, const SessionSettings& settings) {
  // A statement may have only so many parameters, two for each setting.
  constexpr size_t kMaxTogether = 500;
  for (size_t begin = 0; begin < settings.size(); begin += kMaxTogether) {
    const size_t end = std::min(begin + kMaxTogether, settings.size());
    std::string sql = "SELECT ";
    std::vector<SqlParameter> parameters;
    for (size_t i = begin; i < end; ++i) {
      sql += fmt::format("{}pg_catalog.set_config(${}, ${}, false)", i == begin ? "" : ", ",
                         parameters.size() + 1, parameters.size() + 2);
      parameters.emplace_back(settings[i].first);
      parameters.emplace_back(settings[i].second);
    }
    RETURN_IF_ERROR(
        connection.Ask(sql, parameters)
            .status()
            .Because("what the session has SET cannot be set where its select is read"));
  }
  return OkStatus();
}

Status CheckNoPostgresTransaction(const PostgresConnection& session) {
  switch (PQtransactionStatus(session.handle())) {
    case PQTRANS_INTRANS:
      return DatabaseError("25001",
                           "this statement cannot run inside a transaction: other "
                           "connections read for it, and ROLLBACK would not undo it")
          .Hint("COMMIT or ROLLBACK first");
    case PQTRANS_INERROR:
      return DatabaseError("25P02", "the transaction is aborted: nothing runs until it has ended")
          .Hint("ROLLBACK first");
    default:
      return OkStatus();
  }
}

namespace {

// `what`: "table t", "function f".
Status TemporaryInSelect(const std::string& what) {
  const size_t space = what.find(' ');
  const std::string kind = what.substr(0, space);
  const std::string name = what.substr(space + 1);
  if (kind == "function") {
    return Unimplemented(fmt::format("function '{}' reads, or is, what only this session has: "
                                     "other connections read for this statement",
                                     name))
        .Hint(
            "CREATE FUNCTION in a schema that stays, not in pg_temp, and let it read tables that "
            "stay");
  }
  const std::string statement = "CREATE " + UpperAscii(kind);
  return Unimplemented(fmt::format("the {} '{}' is temporary: other connections read for this "
                                   "statement, and do not see it",
                                   kind, name))
      .Hint(kind == "type"
                ? "CREATE TYPE in a schema that stays, not in pg_temp"
                : fmt::format("{} without TEMPORARY, and DROP it afterwards", statement));
}

}  // namespace

Status CheckNothingTemporary(PostgresConnection& session, std::string_view select) {
  ASSIGN_OR_RETURN(const PostgresResult described, session.DescribeColumns(select));
  const int count = PQnfields(described.get());
  if (count == 0) {
    return OkStatus();  // not a SELECT: Describe reports it
  }
  std::string columns;
  for (int i = 0; i < count; ++i) {
    columns += fmt::format("{}c{}", i == 0 ? "" : ", ", i);
  }
  // The server itself tells what the select depends on: by a view that no other session ever sees.
  const RolledBack rolled_back(session);
  RETURN_IF_ERROR(session.Begin(
      "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = 0"));
  const std::string view = "pg_temp.sluice_select";
  const std::string prefix =
      fmt::format("CREATE TEMPORARY VIEW {} ({}) AS ", view.substr(8), columns);
  RETURN_IF_ERROR(session.Ask(prefix + std::string(select), prefix.size()).status());
  ASSIGN_OR_RETURN(const PostgresResult found, session.Ask(kTemporaryInView, {view}));
  for (int row = 0; row < PQntuples(found.get()); ++row) {
    if (PQgetisnull(found.get(), row, 0) != 0) {
      continue;
    }
    const std::string name(PostgresText(found.get(), row, 0));
    return TemporaryInSelect(name);
  }
  return OkStatus();
}

void PutSession(const SessionSettings& settings, DatasetSpec* spec) {
  for (const auto& [name, value] : settings) {
    SessionSetting& setting = *spec->add_session();
    setting.set_name(name);
    setting.set_value(value);
  }
}

SessionSettings SessionOf(const DatasetSpec& spec) {
  SessionSettings settings;
  for (const SessionSetting& setting : spec.session()) {
    settings.emplace_back(setting.name(), setting.value());
  }
  return settings;
}

}  // namespace sluice::catalog
