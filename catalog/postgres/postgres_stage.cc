#include "base/log.h"
#include "catalog/postgres/postgres_stage_internal.h"
#include "catalog/row_ranges_internal.h"

namespace sluice::catalog {
namespace {

// How long to wait for a reader that still uses the table.
constexpr std::string_view kDropPatience = "SET LOCAL lock_timeout = '5s'";
// Almost none; the owner of the schema may drop a table that it may not lock.
constexpr std::string_view kNoPatience = "SET LOCAL lock_timeout = '1ms'";
// Another process of the same role may take a new table for an abandoned one, and drop it, before
// it is locked.
constexpr int kAttempts = 3;

// True if the role may create tables in the schema of stages. The catalog creates that schema for
// all roles; if it does not exist yet, a role with the right creates it for itself. The owner of a
// schema may drop every table in it, so a schema of another user is not used.
Result<bool> MayStage(PostgresConnection& connection) {
  ASSIGN_OR_RETURN(
      const PostgresResult allowed,
      connection.Ask("SELECT CASE WHEN pg_catalog.to_regnamespace('sluice_stage') IS NULL"
                     " THEN pg_catalog.has_database_privilege("
                     "pg_catalog.current_database(), 'CREATE')"
                     " ELSE pg_catalog.has_schema_privilege('sluice_stage', 'CREATE') AND EXISTS"
                     " (SELECT FROM pg_catalog.pg_namespace AS n JOIN pg_catalog.pg_roles AS r"
                     " ON r.oid OPERATOR(pg_catalog.=) n.nspowner WHERE"
                     " n.nspname OPERATOR(pg_catalog.=) 'sluice_stage' AND (r.rolsuper OR"
                     " r.rolname OPERATOR(pg_catalog.=) current_user OR EXISTS"
                     " (SELECT FROM pg_catalog.pg_namespace AS c WHERE"
                     " c.nspname OPERATOR(pg_catalog.=) 'sluice' AND"
                     " c.nspowner OPERATOR(pg_catalog.=) n.nspowner))) END"
                     " AND NOT pg_catalog.pg_is_in_recovery(),"
                     " pg_catalog.to_regnamespace('sluice_stage') IS NULL"));
  if (PostgresText(allowed.get(), 0, 0) != "t") {
    return false;
  }
  if (PostgresText(allowed.get(), 0, 1) == "t") {
    Status created = connection.Run("CREATE SCHEMA IF NOT EXISTS sluice_stage");
    // If two processes create it at the same moment, one of them meets the other's row.
    if (!created.ok() && created.sqlstate() != "23505" && created.sqlstate() != "42P06") {
      return created;
    }
  }
  return true;
}

// The comment on every staging table; a table without it is not ours, whatever its name.
std::string MarkOf(std::string_view table) {
  return fmt::format("Sluice keeps the rows of a select in {} while it reads them", table);
}

// Takes away what default privileges have granted to others: the rows may be of tables that these
// roles must not read.
Status RevokeFromOthers(PostgresConnection& connection, const std::string& table) {
  ASSIGN_OR_RETURN(
      const PostgresResult grantees,
      connection.Ask("SELECT DISTINCT coalesce(pg_catalog.quote_ident(r.rolname), 'PUBLIC') FROM "
                     "pg_catalog.pg_class AS c"
                     " CROSS JOIN pg_catalog.aclexplode(c.relacl) AS a LEFT JOIN"
                     " pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) a.grantee"
                     " WHERE c.oid OPERATOR(pg_catalog.=) $1::pg_catalog.regclass::pg_catalog.oid"
                     " AND a.grantee OPERATOR(pg_catalog.<>) c.relowner",
                     {table}));
  for (int i = 0; i < PQntuples(grantees.get()); ++i) {
    RETURN_IF_ERROR(connection.Run(
        fmt::format("REVOKE ALL ON TABLE {} FROM {}", table, PostgresText(grantees.get(), i, 0))));
  }
  return OkStatus();
}

// Begins a transaction that keeps the table from being dropped.
Status LockStage(PostgresConnection& connection, const std::string& table) {
  RETURN_IF_ERROR(connection.Run("BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"));
  return KeepStage(connection, table);
}

}  // namespace

// Staging tables that nobody has locked: their owner is gone. Hardly waits for a lock, as others
// would have to wait behind it. (Earlier versions had the tables in schema sluice.)
Status DropAbandonedStages(PostgresConnection& connection) {
  ASSIGN_OR_RETURN(
      const PostgresResult stages,
      connection.Ask("SELECT pg_catalog.concat(n.nspname, '.',"
                     " pg_catalog.quote_ident(c.relname))"
                     " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n"
                     " ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
                     " WHERE n.nspname OPERATOR(pg_catalog.=) ANY"
                     " ('{sluice,sluice_stage}'::pg_catalog.name[])"
                     " AND pg_catalog.starts_with(c.relname::pg_catalog.text, 'stage_')"
                     " AND c.relkind OPERATOR(pg_catalog.=) 'r'"
                     " AND c.relpersistence OPERATOR(pg_catalog.=) 'u'"
                     " AND (pg_catalog.pg_has_role(c.relowner, 'USAGE')"
                     " OR pg_catalog.pg_has_role(n.nspowner, 'USAGE'))"
                     " AND pg_catalog.obj_description(c.oid, 'pg_class') OPERATOR(pg_catalog.=)"
                     " pg_catalog.replace($1, '*', pg_catalog.concat(n.nspname, '.', c.relname))",
                     {MarkOf("*")}));
  for (int i = 0; i < PQntuples(stages.get()); ++i) {
    const std::string table(PostgresText(stages.get(), i, 0));
    const Status dropped = connection.Run(
        fmt::format("BEGIN READ WRITE; {}; DROP TABLE {}; COMMIT", kNoPatience, table));
    if (!dropped.ok()) {
      log::Debug("staging table={} stays: {}", table, dropped.message());
      RETURN_IF_ERROR(connection.Run("ROLLBACK"));
    }
  }
  return OkStatus();
}

Status KeepStage(PostgresConnection& connection, const std::string& table) {
  return connection.Run(fmt::format("LOCK TABLE {} IN ACCESS SHARE MODE", table));
}

Result<std::unique_ptr<PostgresStage>> PostgresStage::Create(PostgresDatabase& database,
                                                             const std::string& select,
                                                             const Schema& schema) {
  ASSIGN_OR_RETURN(PostgresPool::Lease owner, database.TakeForStatement());
  ASSIGN_OR_RETURN(const bool allowed, MayStage(*owner));
  if (!allowed) {
    return std::unique_ptr<PostgresStage>();
  }
  RETURN_IF_ERROR(DropAbandonedStages(*owner));
  std::string table;
  Status locked;
  for (int attempt = 0; attempt == 0 || (locked.sqlstate() == "42P01" && attempt < kAttempts);
       ++attempt) {
    table = "sluice_stage.stage_" + RandomSuffix();
    // One process reads in one order, so that the same statement stages the same rows in the same
    // order again.
    RETURN_IF_ERROR(
        owner->Run("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
                   " SET LOCAL synchronize_seqscans = off;"
                   " SET LOCAL max_parallel_workers_per_gather = 0"));
    const std::string prefix = fmt::format("CREATE UNLOGGED TABLE {} ({}) AS ", table,
                                           NumberedColumns(schema.columns.size()));
    const Result<PostgresResult> filled = owner->Ask(prefix + select, prefix.size());
    if (!filled.ok()) {
      return filled.status();
    }
    RETURN_IF_ERROR(RevokeFromOthers(*owner, table));
    RETURN_IF_ERROR(owner->Run(fmt::format("COMMENT ON TABLE {} IS {}; COMMIT", table,
                                           QuoteText(MarkOf(table), Dialect::kPostgres))));
    locked = LockStage(*owner, table);
    if (!locked.ok()) {
      RETURN_IF_ERROR(owner->Run("ROLLBACK"));
    }
  }
  RETURN_IF_ERROR(locked);
  std::unique_ptr<PostgresStage> stage(new PostgresStage(std::move(owner), table));
  ASSIGN_OR_RETURN(const PostgresResult rows,
                   stage->owner_->Ask("SELECT pg_catalog.count(*) FROM " + table));
  stage->rows_ = PostgresInteger(rows.get(), 0, 0);
  return stage;
}

PostgresStage::~PostgresStage() {
  owner_->IgnoreStop();
  const Status dropped = owner_->Run(fmt::format(
      "ROLLBACK; BEGIN READ WRITE; {}; DROP TABLE IF EXISTS {}; COMMIT", kDropPatience, table_));
  if (!dropped.ok()) {
    log::Warn("cannot drop staging table={} error=\"{}\"", table_, dropped.message());
  }
  owner_.Discard();
}

}  // namespace sluice::catalog
