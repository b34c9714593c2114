#include "catalog/store/catalog_tables.h"

#include <fmt/core.h>

#include <iterator>
#include <utility>

#include "catalog/store/advisory_lock.h"
#include "catalog/store/catalog_rights.h"
#include "catalog/store/job_logins.h"
#include "catalog/store/stage_rights.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kTables[] = {
    "models",      "model_versions",      "model_chunks",      "jobs",
    "job_events",  "job_metrics",         "job_terms",         "job_journal",
    "job_runners", "job_answers",         "job_records",       "result_tables",
    "model_types", "model_type_versions", "model_type_chunks", "job_logins"};

// {id}, {position}, {bytes}, {json}, {real} and {stamp:column} are spelled differently by the two
// databases.
// The generated time columns are for people and dashboards; the stores read the microseconds.
constexpr std::string_view kDefinitions[] = {
    ("CREATE TABLE IF NOT EXISTS {models} (schema_name text NOT NULL, name text NOT NULL,"
     " next_version bigint NOT NULL, PRIMARY KEY (schema_name, name))"),

    ("CREATE TABLE IF NOT EXISTS {model_versions} (schema_name text NOT NULL, name text NOT NULL,"
     " version bigint NOT NULL, live boolean NOT NULL, type text NOT NULL,"
     " statement text NOT NULL, plan {bytes} NOT NULL, metrics {json} NOT NULL,"
     " job bigint NOT NULL, rows_trained bigint NOT NULL, lineage {json} NOT NULL,"
     " weights_sha256 text NOT NULL, weights_bytes bigint NOT NULL,"
     " created_micros bigint NOT NULL, created {stamp:created_micros},"
     " PRIMARY KEY (schema_name, name, version),"
     " FOREIGN KEY (schema_name, name) REFERENCES {models:bare} (schema_name, name))"),

    ("CREATE TABLE IF NOT EXISTS {model_chunks} (schema_name text NOT NULL, name text NOT NULL,"
     " version bigint NOT NULL, position bigint NOT NULL, bytes {bytes} NOT NULL,"
     " PRIMARY KEY (schema_name, name, version, position))"),

    ("CREATE TABLE IF NOT EXISTS {jobs} (id {id}, state text NOT NULL, kind text NOT NULL,"
     " statement text NOT NULL, model text NOT NULL, username text NOT NULL,"
     " started_micros bigint NOT NULL, finished_micros bigint NOT NULL,"
     " rows_read bigint NOT NULL, rows_trained bigint NOT NULL, rows_retried bigint NOT NULL,"
     " rows_skipped bigint NOT NULL, error text NOT NULL,"
     " cancel_requested boolean NOT NULL DEFAULT false, started {stamp:started_micros})"),

    ("CREATE TABLE IF NOT EXISTS {job_events} (job_id bigint NOT NULL, position {position},"
     " micros bigint NOT NULL, kind text NOT NULL, detail text NOT NULL, at {stamp:micros})"),

    ("CREATE TABLE IF NOT EXISTS {job_metrics} (job_id bigint NOT NULL, position {position},"
     " micros bigint NOT NULL, step bigint NOT NULL, name text NOT NULL, value {real},"
     " at {stamp:micros})"),

    ("CREATE INDEX IF NOT EXISTS {job_events:index} ON {job_events} (job_id)"),

    ("CREATE INDEX IF NOT EXISTS {job_metrics:index} ON {job_metrics} (job_id)"),

    "CREATE TABLE IF NOT EXISTS {job_terms} (job_id bigint PRIMARY KEY, term bigint NOT NULL)",

    ("CREATE TABLE IF NOT EXISTS {job_journal} (job_id bigint NOT NULL, position {position},"
     " entry {bytes} NOT NULL)"),

    "CREATE INDEX IF NOT EXISTS {job_journal:index} ON {job_journal} (job_id)",

    ("CREATE TABLE IF NOT EXISTS {job_runners} (job_id bigint PRIMARY KEY, place text NOT NULL,"
     " pid bigint NOT NULL, started bigint NOT NULL, seen_micros bigint NOT NULL)"),
};

// Which tables Sluice wrote: see result_table.h.
constexpr std::string_view kResultTables =
    "CREATE TABLE IF NOT EXISTS {result_tables} (schema_name text NOT NULL,"
    " table_name text NOT NULL, identity text NOT NULL, columns text NOT NULL,"
    " statement_kind text NOT NULL, job bigint NOT NULL, written_micros bigint NOT NULL,"
    " written {stamp:written_micros}, PRIMARY KEY (schema_name, table_name))";

// The answers of jobs: see JobStore::Answer.
constexpr std::string_view kJobAnswers =
    "CREATE TABLE IF NOT EXISTS {job_answers} (job_id bigint PRIMARY KEY, answer {bytes} NOT NULL)";

// Records that a job's runner stores for its successors: see JobStore::KeepRecord.
constexpr std::string_view kJobRecords =
    "CREATE TABLE IF NOT EXISTS {job_records} (job_id bigint NOT NULL, name text NOT NULL,"
    " content {bytes} NOT NULL, PRIMARY KEY (job_id, name))";

// Model types that users define: like models, with their source instead of weights; `type` is the
// language. Unlike the older tables, they have always had owners.
constexpr std::string_view kModelTypes[] = {
    ("CREATE TABLE IF NOT EXISTS {model_types} (schema_name text NOT NULL, name text NOT NULL,"
     " next_version bigint NOT NULL{owner}, PRIMARY KEY (schema_name, name))"),

    ("CREATE TABLE IF NOT EXISTS {model_type_versions} (schema_name text NOT NULL,"
     " name text NOT NULL, version bigint NOT NULL, live boolean NOT NULL, type text NOT NULL,"
     " statement text NOT NULL, plan {bytes} NOT NULL, metrics {json} NOT NULL,"
     " job bigint NOT NULL, rows_trained bigint NOT NULL, lineage {json} NOT NULL,"
     " weights_sha256 text NOT NULL, weights_bytes bigint NOT NULL,"
     " created_micros bigint NOT NULL, created {stamp:created_micros},"
     " PRIMARY KEY (schema_name, name, version),"
     " FOREIGN KEY (schema_name, name) REFERENCES {model_types:bare} (schema_name, name))"),

    ("CREATE TABLE IF NOT EXISTS {model_type_chunks} (schema_name text NOT NULL,"
     " name text NOT NULL, version bigint NOT NULL, position bigint NOT NULL,"
     " bytes {bytes} NOT NULL, PRIMARY KEY (schema_name, name, version, position))"),
};

// Columns that earlier versions of Sluice did not create.
std::vector<std::string_view> NewerTables() {
  std::vector<std::string_view> tables = {kResultTables, kJobAnswers, kJobRecords};
  tables.insert(tables.end(), std::begin(kModelTypes), std::end(kModelTypes));
  return tables;
}

// Any number; every process that creates the tables takes the same lock.
constexpr std::string_view kCreationLock = "SELECT pg_try_advisory_xact_lock(736811223)";

// Without the lock, PostgreSQL refuses one of two processes that create the tables at once.
Status AwaitCreationLock(SqlSession& session) {
  return AwaitAdvisoryLock([&session]() -> Result<bool> {
    ASSIGN_OR_RETURN(const SqlRows taken, session.Query(kCreationLock, {}));
    return IntegerCell(taken.at(0).at(0)) != 0;
  });
}

void ReplaceAll(std::string* text, std::string_view from, std::string_view to) {
  for (size_t at = text->find(from); at != std::string::npos;
       at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

std::string Definition(std::string_view definition, bool postgres) {
  std::string sql(definition);
  ReplaceAll(&sql, "{id}",
             postgres ? "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"
                      : "INTEGER PRIMARY KEY AUTOINCREMENT");
  ReplaceAll(
      &sql, "{position}",
      postgres ? "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY" : "INTEGER PRIMARY KEY");
  ReplaceAll(&sql, "{bytes}", postgres ? "bytea" : "blob");
  ReplaceAll(&sql, "{json}", postgres ? "json" : "text");
  ReplaceAll(&sql, "{real}", postgres ? "double precision" : "real");
  ReplaceAll(&sql, "{models:bare}", postgres ? "sluice.models" : "sluice_models");
  ReplaceAll(&sql, "{model_types:bare}", postgres ? "sluice.model_types" : "sluice_model_types");
  ReplaceAll(&sql, "{owner}", postgres ? OwnerColumns() : "");
  for (const std::string_view table : {"job_events", "job_metrics", "job_journal"}) {
    // PostgreSQL puts an index into its table's schema.
    ReplaceAll(&sql, fmt::format("{{{}:index}}", table),
               postgres ? fmt::format("{}_by_job", table) : fmt::format("sluice_{}_by_job", table));
  }
  for (const std::string_view column :
       {"created_micros", "started_micros", "written_micros", "micros"}) {
    ReplaceAll(
        &sql, fmt::format("{{stamp:{}}}", column),
        postgres
            ? fmt::format("timestamptz GENERATED ALWAYS AS (to_timestamp({} / 1e6)) STORED", column)
            : fmt::format("text GENERATED ALWAYS AS (datetime({} / 1000000, 'unixepoch')) VIRTUAL",
                          column));
  }
  return sql;
}

}  // namespace

std::string CatalogTables::Resolve(std::string_view sql) const {
  const bool postgres = dialect_ == Dialect::kPostgres;
  std::string text(sql);
  for (const std::string_view table : kTables) {
    ReplaceAll(&text, fmt::format("{{{}}}", table),
               fmt::format("{}{}", postgres ? "sluice." : "sluice_", table));
  }
  return text;
}

Result<bool> CatalogTables::HasTable(SqlSession& session, std::string_view table) {
  const std::string query =
      dialect_ == Dialect::kPostgres
          ? fmt::format(
                "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid ="
                " c.relnamespace WHERE n.nspname = 'sluice' AND c.relname = '{}'",
                table)
          : fmt::format("SELECT count(*) FROM sqlite_schema WHERE name = 'sluice_{}'", table);
  ASSIGN_OR_RETURN(const SqlRows rows, session.Query(query, {}));
  return IntegerCell(rows.at(0).at(0)) > 0;
}

Result<bool> CatalogTables::IsCurrent(SqlSession& session) {
  if (dialect_ == Dialect::kSqlite) {
    return HasTable(session, "model_type_chunks");
  }
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Query("SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                    " WHERE n.nspname = 'sluice' AND c.relname IN ('result_tables', 'job_answers',"
                    " 'job_records', 'model_types') AND c.relrowsecurity",
                    {}));
  ASSIGN_OR_RETURN(
      const SqlRows inspectors,
      session.Query("SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
                    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'sluice'"
                    " AND c.relname IN ('models', 'model_types') AND a.attname = 'inspectors'",
                    {}));
  ASSIGN_OR_RETURN(const Owners owners, OwnersNow(session));
  ASSIGN_OR_RETURN(const bool stage_for_public, IsStageForPublic(session));
  return !stage_for_public && IntegerCell(rows.at(0).at(0)) == 4 &&
         IntegerCell(inspectors.at(0).at(0)) == 2 && owners == Owners::kByOid;
}

Result<Owners> CatalogTables::OwnersNow(SqlSession& session) {
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      session.Query("SELECT a.atttypid = 'regrole'::regtype FROM pg_attribute a JOIN pg_class c ON"
                    " c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE"
                    " n.nspname = 'sluice' AND c.relname = 'jobs' AND a.attname = 'owner'",
                    {}));
  return rows.empty()                      ? Owners::kNotAtAll
         : IntegerCell(rows[0].at(0)) != 0 ? Owners::kByOid
                                           : Owners::kByName;
}

Result<bool> CatalogTables::Exist(SqlSession& session) {
  const uint64_t generation = generation_;
  if (exist_in_ == generation) {
    return true;
  }
  // The last one of the tables for models and jobs.
  ASSIGN_OR_RETURN(const bool exist, HasTable(session, "job_runners"));
  if (!exist) {
    return false;
  }
  RETURN_IF_ERROR(CheckOwners(session));
  ASSIGN_OR_RETURN(const bool current, IsCurrent(session));
  if (!current) {
    const Status updated = CreateAll(session, NewerTables());
    // A read-only SQLite file shows its jobs unchanged.
    if (!updated.ok() && dialect_ == Dialect::kPostgres) {
      return Status(updated).Because(
          "models, model types and jobs get what is new, in tables that an earlier version of "
          "Sluice has "
          "made");
    }
  }
  exist_in_ = generation;
  return true;
}

Status CatalogTables::Create(SqlSession& session) {
  const uint64_t generation = generation_;
  ASSIGN_OR_RETURN(const bool exist, Exist(session));
  if (exist) {
    return OkStatus();
  }
  std::vector<std::string_view> definitions(std::begin(kDefinitions), std::end(kDefinitions));
  const std::vector<std::string_view> newer = NewerTables();
  definitions.insert(definitions.end(), newer.begin(), newer.end());
  RETURN_IF_ERROR(CreateAll(session, definitions));
  exist_in_ = generation;
  return OkStatus();
}

Result<bool> CatalogTables::AnswersExist(SqlSession& session) {
  return HasTable(session, "job_answers");
}

Result<bool> CatalogTables::ResultTablesExist(SqlSession& session) {
  return HasTable(session, "result_tables");
}

Status CatalogTables::CreateResultTables(SqlSession& session) {
  RETURN_IF_ERROR(Create(session));
  ASSIGN_OR_RETURN(const bool exist, ResultTablesExist(session));
  if (exist) {
    return OkStatus();
  }
  return CreateAll(session, {kResultTables})
      .Because("which tables Sluice wrote is recorded in schema sluice");
}

Status CatalogTables::CreateAll(SqlSession& session,
                                const std::vector<std::string_view>& definitions) {
  const bool postgres = dialect_ == Dialect::kPostgres;
  ASSIGN_OR_RETURN(const auto transaction, SqlTransaction::Begin(session, dialect_, true));
  if (postgres) {
    RETURN_IF_ERROR(AwaitCreationLock(session));
    RETURN_IF_ERROR(MakeSchema(session));
  }
  for (const std::string_view definition : definitions) {
    RETURN_IF_ERROR(session.Query(Resolve(Definition(definition, postgres)), {}).status());
  }
  if (postgres) {
    RETURN_IF_ERROR(GiveRights(session));
  }
  return transaction->Commit();
}

Status CatalogTables::MakeSchema(SqlSession& session) {
  // Checked first: CREATE SCHEMA IF NOT EXISTS requires the privilege even if there is nothing to
  // do.
  ASSIGN_OR_RETURN(const SqlRows schema,
                   session.Query("SELECT 1 FROM pg_namespace WHERE nspname = 'sluice'", {}));
  if (schema.empty()) {
    Status created = session.Query("CREATE SCHEMA sluice", {}).status();
    if (!created.ok()) {
      return std::move(created)
          .Because("models and jobs are stored in schema sluice")
          .Hint("let an administrator run CREATE SCHEMA sluice AUTHORIZATION <role>");
    }
  }
  RETURN_IF_ERROR(CheckNoOtherTables(session));
  return CheckOwners(session);
}

// A role may have had a schema of this name before Sluice came.
Status CatalogTables::CheckNoOtherTables(SqlSession& session) {
  ASSIGN_OR_RETURN(
      const SqlRows others,
      session.Query("SELECT c.relname::text FROM pg_class c WHERE c.relnamespace ="
                    " to_regnamespace('sluice') AND c.relkind IN ('r', 'v', 'm', 'p', 'f')"
                    " AND to_regclass('sluice.model_versions') IS NULL ORDER BY 1 LIMIT 1",
                    {}));
  if (others.empty()) {
    return OkStatus();
  }
  return Status(Code::kAlreadyExists,
                fmt::format("schema sluice, where models and jobs are stored, holds other tables, "
                            "such as {}",
                            TextCell(others[0][0])))
      .SqlState("42P06")
      .Hint("rename it before the first training: ALTER SCHEMA sluice RENAME TO ...");
}

// The owner of a table may add a trigger, which runs with the rights of the writing role; the owner
// of the schema may replace a table. A job's login has been made by that owner, and has no rights
// elsewhere.
Status CatalogTables::CheckOwners(SqlSession& session) {
  if (dialect_ == Dialect::kSqlite) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      const SqlRows strangers,
      session.Query(
          "SELECT r.rolname::text, quote_ident(session_user::text),"
          " quote_ident(current_database()::text) FROM pg_roles r WHERE NOT r.rolsuper AND "
          "r.rolname <>"
          " session_user AND r.oid IN (SELECT n.nspowner FROM"
          " pg_namespace n WHERE n.nspname = 'sluice' UNION SELECT c.relowner FROM pg_class c JOIN"
          " pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'sluice' AND c.relname IN"
          " ('models', 'model_versions', 'model_chunks', 'jobs', 'job_events', 'job_metrics',"
          " 'job_terms', 'job_journal', 'job_runners', 'job_answers', 'job_records',"
          " 'model_types', 'model_type_versions', 'model_type_chunks',"
          " 'result_tables')) AND NOT " +
              IsJobLogin() + " LIMIT 1",
          {}));
  if (strangers.empty()) {
    return OkStatus();
  }
  const std::string owner = TextCell(strangers[0][0]);
  return Status(Code::kPermissionDenied,
                fmt::format("schema sluice or a table of it belongs to role {}, which could have "
                            "this login run anything there",
                            owner))
      .SqlState("42501")
      .Hint(fmt::format("log in as {}; or let a superuser give you the schema and its tables: "
                        "sluice setup --adopt {} | psql -d {}",
                        owner, TextCell(strangers[0][1]), TextCell(strangers[0][2])));
}

// Another process may have done so before we had the lock.
Status CatalogTables::GiveRights(SqlSession& session) {
  ASSIGN_OR_RETURN(const bool given, IsCurrent(session));
  if (given) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const Owners owners, OwnersNow(session));
  for (const std::string& definition : RightsDefinitions(owners)) {
    RETURN_IF_ERROR(session.Query(Resolve(definition), {}).status());
  }
  // A schema that an administrator created for us may belong to another role.
  ASSIGN_OR_RETURN(const SqlRows ours,
                   session.Query("SELECT 1 FROM pg_namespace WHERE nspname = 'sluice'"
                                 " AND pg_has_role(nspowner, 'USAGE')",
                                 {}));
  if (!ours.empty()) {
    RETURN_IF_ERROR(session.Query("GRANT USAGE ON SCHEMA sluice TO PUBLIC", {}).status());
  }
  return MakeStageSchema(session);
}

Status CatalogTables::AllowStaging(SqlSession& session, int64_t role) {
  const uint64_t generation = generation_;
  {
    const MutexLock lock(mutex_);
    if (stagers_in_ == generation && stagers_.contains(role)) {
      return OkStatus();
    }
  }
  RETURN_IF_ERROR(Create(session));
  RETURN_IF_ERROR(catalog::AllowStaging(session, role));
  const MutexLock lock(mutex_);
  if (stagers_in_ != generation) {
    stagers_.clear();
    stagers_in_ = generation;
  }
  stagers_.insert(role);
  return OkStatus();
}

}  // namespace sluice::catalog
