#include "catalog/postgres/postgres_result_table_internal.h"

#include <fmt/core.h>

#include <utility>

#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {
namespace {

// Types outside pg_catalog are spelled with their schema, regardless of the search path.
constexpr std::string_view kColumns =
    "SELECT coalesce(string_agg(quote_ident(a.attname) || ' ' || CASE WHEN n.nspname = 'pg_catalog'"
    " THEN format_type(a.atttypid, a.atttypmod) ELSE quote_ident(n.nspname) || '.' ||"
    " quote_ident(t.typname) || CASE WHEN a.atttypmod < 0 THEN '' ELSE '(' || a.atttypmod || ')'"
    " END END || CASE WHEN a.attgenerated = '' THEN '' ELSE ' generated' END,"
    " ', ' ORDER BY a.attnum), '') FROM pg_catalog.pg_attribute a"
    " JOIN pg_catalog.pg_type t ON t.oid = a.atttypid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace"
    " WHERE a.attrelid = {} AND a.attnum > 0 AND NOT a.attisdropped";

// A mark, or part of a record, as any role can write it: one that is longer than what Sluice
// writes, for as many columns as a table can have, is none.
std::string ShortText(std::string_view text) {
  return fmt::format(
      "CASE WHEN pg_catalog.octet_length({0}) OPERATOR(pg_catalog.<=) 1048576 THEN {0} END", text);
}

// The mark on a table that Sluice wrote.
std::string MarkText(const TableName& table, const std::string& columns) {
  return fmt::format("written by Sluice as {} with ({})", table.Text(), columns);
}

std::string_view KindOf(std::string_view relkind) {
  switch (relkind.empty() ? ' ' : relkind.front()) {
    case 'r':
      return "table";
    case 'p':
      return "partitioned table";
    case 'v':
      return "view";
    case 'm':
      return "materialized view";
    case 'f':
      return "foreign table";
    case 'S':
      return "sequence";
    case 'c':
      return "composite type";
    default:
      return "index";
  }
}

Status AskForRecord(PostgresConnection& connection, FoundTable* found) {
  const Result<PostgresResult> exists = connection.Ask(
      "SELECT to_regclass('sluice.result_tables') IS NOT NULL"
      " FROM pg_catalog.pg_namespace WHERE nspname = 'sluice'");
  Status failed = exists.status();
  if (exists.ok() && (PQntuples(exists->get()) == 0 || PostgresText(exists->get(), 0, 0) != "t")) {
    return OkStatus();
  }
  if (exists.ok()) {
    const Result<PostgresResult> record =
        connection.Ask(fmt::format("SELECT {}, {} FROM sluice.result_tables"
                                   " WHERE schema_name = $1 AND table_name = $2",
                                   ShortText("identity"), ShortText("columns")),
                       {found->name.schema, found->name.name});
    if (record.ok()) {
      if (PQntuples(record->get()) > 0) {
        found->recorded_identity = PostgresText(record->get(), 0, 0);
        found->recorded_columns = PostgresText(record->get(), 0, 1);
      }
      return OkStatus();
    }
    failed = record.status();
  }
  if (failed.sqlstate() != "42501") {
    return failed;
  }
  return std::move(failed)
      .Because(fmt::format("it cannot be known whether Sluice wrote table {}", found->name.Text()))
      .Hint(
          "GRANT USAGE ON SCHEMA sluice, and SELECT, INSERT, UPDATE ON sluice.result_tables, to "
          "this role");
}

Status ReadRecord(PostgresConnection& connection, FoundTable* found) {
  if (!connection.InTransaction()) {
    return AskForRecord(connection, found);  // a connection of the login itself
  }
  RETURN_IF_ERROR(connection.Run(fmt::format("SAVEPOINT session_role; {}", kAsLogin)));
  RETURN_IF_ERROR(AskForRecord(connection, found));
  return connection.Run("ROLLBACK TO SAVEPOINT session_role; RELEASE SAVEPOINT session_role");
}

// The schema in which a table of that name is, or would be created; "" if there is none.
Result<std::string> CurrentSchema(PostgresConnection& connection, const TableName& name) {
  ASSIGN_OR_RETURN(const PostgresResult found,
                   connection.Ask("SELECT coalesce((SELECT n.nspname FROM pg_catalog.pg_class c"
                                  " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                                  " WHERE c.oid = pg_catalog.to_regclass($1)::pg_catalog.oid),"
                                  " pg_catalog.current_schema())",
                                  {name.Quoted()}));
  return std::string(PostgresText(found.get(), 0, 0));
}

Result<bool> Is(PostgresConnection& connection, const std::string& sql,
                const std::vector<SqlParameter>& parameters) {
  ASSIGN_OR_RETURN(const PostgresResult answer, AskServer(connection, sql, parameters));
  return PostgresText(answer.get(), 0, 0) == "t";
}

// A table creates a type of the same name, so an existing type is in its way. The type of a table
// that another session has created since the check is not: the commit finds that table.
Status CheckNoType(PostgresConnection& connection, const TableName& name) {
  ASSIGN_OR_RETURN(const bool taken,
                   Is(connection,
                      "SELECT EXISTS (SELECT FROM pg_catalog.pg_type t"
                      " JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace"
                      " LEFT JOIN pg_catalog.pg_class c ON c.oid = t.typrelid"
                      " WHERE n.nspname = $1 AND t.typname = $2 AND t.typcategory <> 'A'"
                      " AND coalesce(c.relkind = 'c', true))",
                      {name.schema, name.name}));
  return taken ? AlreadyExists(fmt::format("there is a type {}, and a table makes a type of its "
                                           "own name",
                                           name.Text()))
                     .SqlState("42710")
                     .Hint("name another table")
               : OkStatus();
}

Status NeedCreate(PostgresConnection& connection, const TableName& name) {
  ASSIGN_OR_RETURN(
      const bool allowed,
      Is(connection, "SELECT has_schema_privilege($1::text, 'CREATE')", {name.schema}));
  if (allowed) {
    return OkStatus();
  }
  return DatabaseError("42501", fmt::format("permission denied for schema {}", name.schema))
      .Hint(fmt::format("GRANT CREATE ON SCHEMA {} to this role, or name a table in another schema",
                        QuoteName(name.schema)));
}

// The statement names a table, and Sluice's mark on it says that its rows may go; neither says that
// its owner's code may run with this role's rights.
Status CheckTriggersOfOthers(PostgresConnection& connection, const FoundTable& table) {
  ASSIGN_OR_RETURN(
      const PostgresResult found,
      AskServer(connection,
                "SELECT pg_get_userbyid(c.relowner), pg_describe_object('pg_trigger'::regclass,"
                " t.oid, 0) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_trigger t"
                " ON t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D'"
                " WHERE c.oid = $1::oid AND NOT pg_has_role(c.relowner, 'USAGE') LIMIT 1",
                {table.identity}));
  if (PQntuples(found.get()) == 0) {
    return OkStatus();
  }
  return DatabaseError("42501", fmt::format("table {} belongs to role {}, and {} would run with "
                                            "the rights of this role when it is refilled",
                                            table.name.Text(), PostgresText(found.get(), 0, 0),
                                            PostgresText(found.get(), 0, 1)))
      .Hint("name another table; or WITH result.append=true, if that is to run");
}

// Any role can mark a table of its own as a result of Sluice's and let everybody write it. Its
// owner would read the rows, and its checks, defaults and indexes would run with this role's
// rights. A superuser has all that anyway.
Status CheckOwner(PostgresConnection& connection, const FoundTable& table) {
  ASSIGN_OR_RETURN(
      const PostgresResult found,
      AskServer(connection,
                "SELECT r.rolname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_roles r"
                " ON r.oid = c.relowner WHERE c.oid = $1::oid AND NOT r.rolsuper"
                " AND NOT pg_has_role(c.relowner, 'USAGE')",
                {table.identity}));
  if (PQntuples(found.get()) == 0) {
    return OkStatus();
  }
  const std::string owner(PostgresText(found.get(), 0, 0));
  return DatabaseError("42501",
                       fmt::format("table {} belongs to role {}: a role refills result tables of "
                                   "its own, or of roles that it is a member of",
                                   table.name.Text(), owner))
      .Hint(fmt::format(
          "name another table; or GRANT {} TO this role; or WITH result.append=true, which adds "
          "rows if that role may have them",
          QuoteName(owner)));
}

Status CheckRefill(PostgresConnection& connection, const FoundTable& table) {
  RETURN_IF_ERROR(CheckOwner(connection, table));
  ASSIGN_OR_RETURN(const bool hidden,
                   Is(connection, "SELECT row_security_active($1::oid)", {table.identity}));
  if (hidden) {
    return DatabaseError("42501",
                         fmt::format("row-level security decides which rows of table {} this role "
                                     "sees, so that old rows could stay when it is refilled",
                                     table.name.Text()))
        .Hint(
            "let the table's owner run the statement (without FORCE ROW LEVEL SECURITY), or a role "
            "with BYPASSRLS; or name another table");
  }
  ASSIGN_OR_RETURN(
      const PostgresResult taken_along,
      AskServer(connection,
                "SELECT conrelid::regclass, conname FROM pg_catalog.pg_constraint"
                " WHERE contype = 'f' AND confrelid = $1::oid AND conrelid <> confrelid"
                " AND confdeltype IN ('c', 'n', 'd') ORDER BY 1, 2 LIMIT 1",
                {table.identity}));
  if (PQntuples(taken_along.get()) > 0) {
    return FailedPrecondition(
               fmt::format("refilling table {} would change table {}: its foreign key {} follows "
                           "the rows that are deleted",
                           table.name.Text(), PostgresText(taken_along.get(), 0, 0),
                           PostgresText(taken_along.get(), 0, 1)))
        .Hint(
            "a foreign key with ON DELETE NO ACTION DEFERRABLE lets the rows come back; or name "
            "another table");
  }
  RETURN_IF_ERROR(CheckTriggersOfOthers(connection, table));
  RETURN_IF_ERROR(connection.Run("EXPLAIN " + FindOldRows(table.name)));
  return connection.Run("EXPLAIN " + DeleteOldRows(table.name));
}

// Describes, for an error, a table that is part of another one or has others as its parts.
Status CheckInheritance(PostgresConnection& connection, const FoundTable& table) {
  ASSIGN_OR_RETURN(
      const PostgresResult bonds,
      AskServer(connection,
                "SELECT CASE WHEN i.inhrelid <> $1::oid"
                " THEN i.inhrelid::regclass || ' inherits from it'"
                " WHEN c.relispartition THEN 'it is a partition of ' || i.inhparent::regclass"
                " ELSE 'it inherits from ' || i.inhparent::regclass END"
                " FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c"
                " ON c.oid = i.inhrelid WHERE $1::oid IN (i.inhrelid, i.inhparent)"
                " ORDER BY 1 LIMIT 1",
                {table.identity}));
  if (PQntuples(bonds.get()) == 0) {
    return OkStatus();
  }
  return FailedPrecondition(fmt::format("table {} cannot be replaced: {}", table.name.Text(),
                                        PostgresText(bonds.get(), 0, 0)))
      .Hint(
          "WITH result.append=true adds the rows to it; or ALTER TABLE to part them first, or name "
          "another table");
}

Status CheckReplace(PostgresConnection& connection, const FoundTable& table) {
  ASSIGN_OR_RETURN(
      const PostgresResult facts,
      AskServer(connection,
                "SELECT pg_has_role(c.relowner, 'USAGE'), c.relrowsecurity,"
                " (SELECT pg_describe_object(d.classid, d.objid, d.objsubid)"
                "  FROM pg_catalog.pg_depend d LEFT JOIN pg_catalog.pg_constraint k"
                "  ON d.classid = 'pg_constraint'::regclass AND k.oid = d.objid"
                "  WHERE (d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid"
                "   OR d.refclassid = 'pg_type'::regclass AND d.refobjid IN (t.oid, t.typarray))"
                "  AND (d.deptype = 'n' OR d.classid = 'pg_publication_rel'::regclass)"
                "  AND k.conrelid IS DISTINCT FROM c.oid LIMIT 1)"
                " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_type t ON t.oid = c.reltype"
                " WHERE c.oid = $1::oid",
                {table.identity}));
  if (PQntuples(facts.get()) == 0) {
    return OkStatus();  // gone meanwhile; the next check notices
  }
  if (PostgresText(facts.get(), 0, 0) != "t") {
    return DatabaseError("42501",
                         fmt::format("must be owner of table {} to replace it", table.name.Text()))
        .Hint("name another table");
  }
  if (PostgresText(facts.get(), 0, 1) == "t") {
    return FailedPrecondition(
               fmt::format("table {} has row-level security, which a new table would not have",
                           table.name.Text()))
        .Hint("drop it yourself, or name another table");
  }
  RETURN_IF_ERROR(CheckInheritance(connection, table));
  if (PQgetisnull(facts.get(), 0, 2) == 0) {
    return FailedPrecondition(fmt::format("table {} cannot be replaced: {} depends on it",
                                          table.name.Text(), PostgresText(facts.get(), 0, 2)))
        .SqlState("2BP01")
        .Hint("drop that first, or name another table");
  }
  return OkStatus();
}

}  // namespace

Result<PostgresResult> AskServer(PostgresConnection& connection, const std::string& sql,
                                 const std::vector<SqlParameter>& parameters) {
  const bool inside = connection.InTransaction();
  constexpr std::string_view kServerOnly = "; SET LOCAL search_path = pg_catalog, pg_temp";
  RETURN_IF_ERROR(inside ? connection.Run(fmt::format("SAVEPOINT server_only{}", kServerOnly))
                         : connection.Begin(fmt::format("BEGIN READ ONLY{}", kServerOnly)));
  Result<PostgresResult> answer = connection.Ask(sql, parameters);
  if (!inside) {
    connection.Rollback();
  } else if (answer.ok()) {
    RETURN_IF_ERROR(
        connection.Run("ROLLBACK TO SAVEPOINT server_only; RELEASE SAVEPOINT server_only"));
  }
  return answer;
}

Status MarkPostgresTable(PostgresConnection& connection, const TableName& staging,
                         const TableName& table, const std::string& columns) {
  return connection.Run(fmt::format("COMMENT ON TYPE {} IS {}", staging.Quoted(),
                                    QuoteText(MarkText(table, columns), Dialect::kPostgres)));
}

Status CheckPostgresArrived(PostgresConnection& connection, const TableName& table,
                            int64_t written) {
  ASSIGN_OR_RETURN(
      const PostgresResult counted,
      connection.Ask(fmt::format("SELECT pg_catalog.count(*) FROM ONLY {}", table.Quoted())));
  const int64_t arrived = PostgresInteger(counted.get(), 0, 0);
  if (arrived == written) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      const PostgresResult hooks,
      AskServer(connection,
                "SELECT string_agg(hook, ', ' ORDER BY hook) FROM ("
                "SELECT 'trigger ' || quote_ident(tgname) AS hook FROM pg_catalog.pg_trigger"
                " WHERE tgrelid = $1::regclass AND NOT tgisinternal AND tgtype & 4 <> 0"
                " AND tgenabled <> 'D' UNION ALL"
                " SELECT 'rule ' || quote_ident(rulename) FROM pg_catalog.pg_rewrite"
                " WHERE ev_class = $1::regclass AND ev_type = '3' AND ev_enabled <> 'D') AS h",
                {table.Quoted()}));
  return CheckArrived(arrived, written, std::string(PostgresText(hooks.get(), 0, 0)));
}

Result<PostgresTarget> FindPostgresTarget(PostgresConnection& connection, const TableName& name) {
  RETURN_IF_ERROR(CheckResultName(name, Dialect::kPostgres));
  PostgresTarget target = {name, std::nullopt};
  if (name.schema.empty()) {
    ASSIGN_OR_RETURN(target.name.schema, CurrentSchema(connection, name));
    if (target.name.schema.empty()) {
      return InvalidArgument(fmt::format("there is no schema to create table '{}' in", name.name))
          .SqlState("3F000")
          .Hint("write schema.table, or SET search_path");
    }
    RETURN_IF_ERROR(CheckResultName(target.name, Dialect::kPostgres));
  }
  ASSIGN_OR_RETURN(
      const PostgresResult row,
      AskServer(connection,
                fmt::format("SELECT c.oid, c.relkind, ({}),"
                            " {}"
                            " FROM pg_catalog.pg_namespace s"
                            " LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = s.oid"
                            " AND c.relname = $2 WHERE s.nspname = $1",
                            fmt::format(fmt::runtime(kColumns), "c.oid"),
                            ShortText("pg_catalog.obj_description(c.reltype, 'pg_type')")),
                {target.name.schema, target.name.name}));
  if (PQntuples(row.get()) == 0) {
    return InvalidArgument(fmt::format("schema \"{}\" does not exist", target.name.schema))
        .SqlState("3F000");
  }
  if (PQgetisnull(row.get(), 0, 0) != 0) {
    return target;
  }
  FoundTable found;
  found.name = target.name;
  found.identity = PostgresText(row.get(), 0, 0);
  found.kind = KindOf(PostgresText(row.get(), 0, 1));
  found.columns = PostgresText(row.get(), 0, 2);
  RETURN_IF_ERROR(ReadRecord(connection, &found));
  if (PostgresText(row.get(), 0, 3) != MarkText(found.name, found.recorded_columns)) {
    found.recorded_identity.clear();  // the writer of the record had no right to the table
  }
  target.found = std::move(found);
  return target;
}

Result<std::string> PostgresColumns(PostgresConnection& connection, const TableName& table) {
  ASSIGN_OR_RETURN(
      const PostgresResult columns,
      AskServer(connection, fmt::format(fmt::runtime(kColumns), "$1::regclass"), {table.Quoted()}));
  return std::string(PostgresText(columns.get(), 0, 0));
}

std::string FindOldRows(const TableName& table) {
  return fmt::format("SELECT EXISTS (SELECT FROM ONLY {})", table.Quoted());
}

std::string DeleteOldRows(const TableName& table) {
  return "DELETE FROM ONLY " + table.Quoted();
}

std::string InsertNewRows(const TableName& table, const TableName& staging, const Schema& schema,
                          ResultAction action) {
  // A refilled table gets exactly the given values, even in an identity column.
  return fmt::format("INSERT INTO {} ({}){} SELECT {} FROM {}", table.Quoted(), ColumnList(schema),
                     action == ResultAction::kRefill ? " OVERRIDING SYSTEM VALUE" : "",
                     ColumnList(schema), staging.Quoted());
}

Status CheckPostgresAction(PostgresConnection& connection, const PostgresTarget& target,
                           ResultAction action, const Schema* schema,
                           const std::optional<TableName>& staging) {
  switch (action) {
    case ResultAction::kMake:
      RETURN_IF_ERROR(NeedCreate(connection, target.name));
      return CheckNoType(connection, target.name);
    case ResultAction::kReplace:
      RETURN_IF_ERROR(NeedCreate(connection, target.name));
      return CheckReplace(connection, *target.found);
    case ResultAction::kRefill:
      RETURN_IF_ERROR(CheckRefill(connection, *target.found));
      break;
    case ResultAction::kAppend:
      break;
  }
  if (schema == nullptr || !staging) {
    return OkStatus();
  }
  return connection.Run("EXPLAIN " + InsertNewRows(target.name, *staging, *schema, action));
}

}  // namespace sluice::catalog
