#include <fmt/core.h>

#include <string>
#include <vector>

#include "base/letter_case.h"
#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_result_table_internal.h"
#include "catalog/row_ranges_internal.h"

namespace sluice::catalog {
namespace {

// Where a function's text names a table.
std::vector<TableName> TablesInBody(std::string_view body) {
  const std::vector<SqlToken> tokens = TokenizeSql(body, Dialect::kPostgres);
  const auto text = [&](size_t i) {
    return body.substr(tokens[i].begin, tokens[i].end - tokens[i].begin);
  };
  std::vector<TableName> tables;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const std::string word = LowerAscii(text(i));
    if (word != "from" && word != "join" && word != "only" && word != "table") {
      continue;
    }
    const bool qualified = i + 3 < tokens.size() && text(i + 2) == ".";
    const size_t end = tokens[qualified ? i + 3 : i + 1].end;
    const Result<TableName> table = ParseTableName(
        body.substr(tokens[i + 1].begin, end - tokens[i + 1].begin), Dialect::kPostgres);
    if (table.ok()) {
      tables.push_back(*table);
    }
  }
  return tables;
}

// The server's own dependencies of a view of this SELECT, followed through views, functions,
// partitions and children.
constexpr std::string_view kReads =
    "WITH RECURSIVE reads(class, oid) AS (SELECT 'pg_class'::regclass::oid, '{}'::regclass::oid"
    " UNION SELECT next.class, next.oid FROM reads, LATERAL ("
    "  SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_rewrite r"
    "   JOIN pg_catalog.pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid"
    "   JOIN pg_catalog.pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'"
    "   WHERE reads.class = 'pg_class'::regclass AND r.ev_class = reads.oid"
    "  UNION ALL SELECT d.refclassid, d.refobjid FROM pg_catalog.pg_depend d"
    "   WHERE reads.class = 'pg_proc'::regclass AND d.classid = reads.class AND d.objid = reads.oid"
    "  UNION ALL SELECT 'pg_class'::regclass, i.inhrelid FROM pg_catalog.pg_inherits i"
    "   WHERE reads.class = 'pg_class'::regclass AND i.inhparent = reads.oid) next(class, oid)"
    " WHERE next.class IN ('pg_class'::regclass, 'pg_proc'::regclass))"
    " SELECT n.nspname, c.relname, NULL FROM reads JOIN pg_catalog.pg_class c"
    "  ON reads.class = 'pg_class'::regclass AND c.oid = reads.oid"
    "  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " UNION ALL SELECT NULL, NULL, p.prosrc FROM reads JOIN pg_catalog.pg_proc p"
    "  ON reads.class = 'pg_proc'::regclass AND p.oid = reads.oid"
    "  JOIN pg_catalog.pg_language l ON l.oid = p.prolang AND l.lanname NOT IN ('internal', 'c')";

Status AddDependencies(PostgresConnection& connection, std::string_view select,
                       std::vector<TableName>* tables) {
  const std::string view = "pg_temp.sluice_reads_" + RandomSuffix();
  RETURN_IF_ERROR(connection.Begin("BEGIN"));
  RETURN_IF_ERROR(connection.Ask(fmt::format("CREATE TEMP VIEW {} AS {}", view, select)).status());
  ASSIGN_OR_RETURN(const PostgresResult reads,
                   AskServer(connection, fmt::format(fmt::runtime(kReads), view), {}));
  for (int i = 0; i < PQntuples(reads.get()); ++i) {
    if (PQgetisnull(reads.get(), i, 2) != 0) {
      tables->push_back({std::string(PostgresText(reads.get(), i, 0)),
                         std::string(PostgresText(reads.get(), i, 1))});
      continue;
    }
    for (const TableName& named : TablesInBody(PostgresText(reads.get(), i, 2))) {
      ASSIGN_OR_RETURN(const PostgresResult found,
                       connection.Ask("SELECT n.nspname, c.relname FROM pg_catalog.pg_class c"
                                      " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                                      " WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid",
                                      {named.Quoted()}));
      if (PQntuples(found.get()) > 0) {
        tables->push_back({std::string(PostgresText(found.get(), 0, 0)),
                           std::string(PostgresText(found.get(), 0, 1))});
      }
    }
  }
  return OkStatus();
}

}  // namespace

Result<std::vector<TableName>> PostgresSourceTables(PostgresConnection& connection,
                                                    std::string_view select) {
  const std::string_view trimmed = TrimStatement(select, Dialect::kPostgres);
  // The plan shows functions that the server has inlined.
  ASSIGN_OR_RETURN(std::vector<TableName> tables, TablesInPlan(connection, trimmed));
  // Not every SELECT can be a view; for one that cannot, the plan is used.
  const Status known = AddDependencies(connection, trimmed, &tables);
  connection.Rollback();
  if (!known.ok() && !known.sqlstate().starts_with("42") && !known.sqlstate().starts_with("0A") &&
      !known.sqlstate().starts_with("25")) {
    return known;
  }
  return tables;
}

}  // namespace sluice::catalog
