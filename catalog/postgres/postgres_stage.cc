#include "base/log.h"
#include "catalog/postgres/postgres_stage_internal.h"
#include "catalog/row_ranges_internal.h"

namespace sluice::catalog {
namespace {

// The first half of the advisory lock; the second is the staging table's oid.
constexpr int kStageLock = 736'811'224;
// How long to wait for a reader that still uses the table.
constexpr std::string_view kDropPatience = "SET LOCAL lock_timeout = '5s'";

// True if the role may create tables in the schema of stages. The catalog creates that schema for
// all roles; if it does not exist yet, a role with the right creates it for itself.
Result<bool> MayStage(PostgresConnection& connection) {
  ASSIGN_OR_RETURN(
      const PostgresResult allowed,
      connection.Ask("SELECT CASE WHEN pg_catalog.to_regnamespace('sluice_stage') IS NULL"
                     " THEN pg_catalog.has_database_privilege("
                     "pg_catalog.current_database(), 'CREATE')"
                     " ELSE pg_catalog.has_schema_privilege('sluice_stage', 'CREATE') END"
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

// The arguments of the advisory lock on a table.
std::string LockOf(std::string_view table) {
  return fmt::format(
      "({}, ('{}'::pg_catalog.regclass::pg_catalog.oid::pg_catalog.int8"
      " OPERATOR(pg_catalog.-) 2147483648)::pg_catalog.int4)",
      kStageLock, table);
}

// The comment on every staging table; a table without it is not ours, whatever its name.
std::string MarkOf(std::string_view table) {
  return fmt::format("Sluice keeps the rows of a select in {} while it reads them", table);
}

}  // namespace

// Staging tables whose owner's lock is free: the owner is gone. (Earlier versions had them in
// schema sluice.)
Status DropAbandonedStages(PostgresConnection& connection) {
  ASSIGN_OR_RETURN(
      const PostgresResult stages,
      connection.Ask("SELECT c.oid, pg_catalog.concat(n.nspname, '.',"
                     " pg_catalog.quote_ident(c.relname))"
                     " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n"
                     " ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
                     " WHERE n.nspname OPERATOR(pg_catalog.=) ANY"
                     " ('{sluice,sluice_stage}'::pg_catalog.name[])"
                     " AND pg_catalog.starts_with(c.relname::pg_catalog.text, 'stage_')"
                     " AND c.relkind OPERATOR(pg_catalog.=) 'r'"
                     " AND c.relpersistence OPERATOR(pg_catalog.=) 'u'"
                     " AND pg_catalog.pg_has_role(c.relowner, 'USAGE')"
                     " AND pg_catalog.obj_description(c.oid, 'pg_class') OPERATOR(pg_catalog.=)"
                     " pg_catalog.replace($1, '*', pg_catalog.concat(n.nspname, '.', c.relname))",
                     {MarkOf("*")}));
  for (int i = 0; i < PQntuples(stages.get()); ++i) {
    constexpr int64_t kFirstInteger = -2'147'483'648;  // an oid is unsigned, the lock's number is
                                                       // signed
    const std::string lock = fmt::format("({}, '{}'::pg_catalog.int4)", kStageLock,
                                         PostgresInteger(stages.get(), i, 0) + kFirstInteger);
    ASSIGN_OR_RETURN(const PostgresResult free,
                     connection.Ask("SELECT pg_catalog.pg_try_advisory_lock" + lock));
    if (PostgresText(free.get(), 0, 0) != "t") {
      continue;
    }
    const Status dropped =
        connection.Run(fmt::format("BEGIN; {}; DROP TABLE IF EXISTS {}; COMMIT", kDropPatience,
                                   PostgresText(stages.get(), i, 1)));
    if (!dropped.ok()) {
      log::Warn("cannot drop staging table={} error=\"{}\"", PostgresText(stages.get(), i, 1),
                dropped.message());
      RETURN_IF_ERROR(connection.Run("ROLLBACK"));
    }
    RETURN_IF_ERROR(connection.Run("SELECT pg_catalog.pg_advisory_unlock" + lock));
  }
  return OkStatus();
}

Status KeepStage(PostgresConnection& connection, const std::string& table) {
  return connection.Run("SELECT pg_catalog.pg_advisory_xact_lock_shared" + LockOf(table));
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
  const std::string table = "sluice_stage.stage_" + RandomSuffix();
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
  // Taken before other sessions can see the table.
  RETURN_IF_ERROR(
      owner->Run(fmt::format("SELECT pg_catalog.pg_advisory_lock_shared{};"
                             " COMMENT ON TABLE {} IS {}; COMMIT",
                             LockOf(table), table, QuoteText(MarkOf(table), Dialect::kPostgres))));
  std::unique_ptr<PostgresStage> stage(new PostgresStage(std::move(owner), table));
  ASSIGN_OR_RETURN(const PostgresResult rows,
                   stage->owner_->Ask("SELECT pg_catalog.count(*) FROM " + table));
  stage->rows_ = PostgresInteger(rows.get(), 0, 0);
  return stage;
}

PostgresStage::~PostgresStage() {
  owner_->IgnoreStop();
  const Status dropped =
      owner_->Run(fmt::format("BEGIN; {}; DROP TABLE IF EXISTS {}; COMMIT", kDropPatience, table_));
  if (!dropped.ok()) {
    log::Warn("cannot drop staging table={} error=\"{}\"", table_, dropped.message());
  }
  // Releases the advisory lock as well, in any state of the session.
  owner_.Discard();
}

}  // namespace sluice::catalog
