#include "base/letter_case.h"
#include "catalog/result_table_internal.h"

#include <fmt/core.h>

#include "base/clock.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kDropIt =
    "WITH result.replace=true drops it first, WITH result.append=true adds the rows to it; or name "
    "another table";
constexpr std::string_view kTakeTheRows =
    "WITH result.replace=true takes the new rows instead, WITH result.append=true adds them; or "
    "name another table";

Status Exists(const FoundTable& found, std::string_view why, std::string_view hint = kDropIt) {
  return AlreadyExists(fmt::format("table {} {}", found.name.Text(), why))
      .SqlState("42P07")
      .Hint(std::string(hint));
}

}  // namespace

Result<ResultAction> DecideResultAction(const ResultTable& wanted,
                                        const std::optional<FoundTable>& found,
                                        const std::optional<std::string>& columns) {
  if (!found) {
    return ResultAction::kMake;
  }
  const bool table = found->kind == "table";
  if (!table && !(wanted.append && found->kind == "partitioned table")) {
    return InvalidArgument(
               fmt::format("{} is {} {}, and a result is written to a table", found->name.Text(),
                           found->kind.find_first_of("aeiou") == 0 ? "an" : "a", found->kind))
        .SqlState("42809")
        .Hint("name another table");
  }
  if (wanted.append) {
    return ResultAction::kAppend;
  }
  if (wanted.replace || found->IsOurs()) {
    const bool stays = found->HasOurShape() && (!columns || *columns == found->columns);
    return stays ? ResultAction::kRefill : ResultAction::kReplace;
  }
  if (found->identity.empty() || found->identity != found->recorded_identity) {
    return Exists(*found, "exists, and Sluice did not write it");
  }
  if (!found->HasOurShape()) {
    return Exists(*found, "was altered since Sluice wrote it")
        .Detail(fmt::format("it was written with ({}), and has ({})", found->recorded_columns,
                            found->columns));
  }
  return Exists(*found, "has other rows than Sluice wrote", kTakeTheRows);
}

Status CheckPostgresName(const std::string& name) {
  if (name.size() <= kMostPostgresNameBytes) {
    return OkStatus();
  }
  return InvalidArgument(fmt::format("the name '{}' has {} bytes; PostgreSQL keeps {}", name,
                                     name.size(), kMostPostgresNameBytes))
      .SqlState("42622");
}

Status CheckResultName(const TableName& name, Dialect dialect) {
  const bool postgres = dialect == Dialect::kPostgres;
  const auto is_system = [&] {
    if (postgres) {
      return name.schema == "information_schema" || name.schema.starts_with("pg_");
    }
    return LowerAscii(name.name).starts_with("sqlite_");
  };
  const bool is_catalog = postgres ? name.schema == "sluice" || name.schema == "sluice_stage"
                                   : LowerAscii(name.name).starts_with("sluice_");
  if (is_system() || is_catalog) {
    return InvalidArgument(fmt::format("{} is in the part of the database that belongs to {}",
                                       name.Text(),
                                       is_catalog ? "Sluice's own tables"
                                       : postgres ? "PostgreSQL itself"
                                                  : "SQLite itself"))
        .SqlState("42939")
        .Hint("name another table");
  }
  if (!postgres && LowerAscii(name.schema) == "temp") {
    return InvalidArgument("a result cannot be written to a temporary table")
        .SqlState("0A000")
        .Hint("temporary tables belong to one connection: name another table");
  }
  for (const std::string& part : {name.schema, name.name}) {
    if (postgres) {
      RETURN_IF_ERROR(CheckPostgresName(part));
    }
    if (part.find('\0') != std::string::npos) {
      return SyntaxError("a table's name cannot hold a NULL byte");
    }
  }
  return OkStatus();
}

Status FindTemporaryTable(std::string_view kind, const TableName& result) {
  return Unimplemented(fmt::format("the {} '{}' is temporary: it would be read instead of the "
                                   "result, which other connections write for this statement",
                                   kind, result.name))
      .Hint(fmt::format("DROP it, or say which table is meant: {}", result.Text()));
}

Status CheckArrived(int64_t arrived, int64_t written, const std::string& hooks) {
  if (arrived == written) {
    return OkStatus();
  }
  return FailedPrecondition(fmt::format("the table would have {} rows instead of {}{}", arrived,
                                        written, hooks.empty() ? "" : ": it has " + hooks))
      .Hint("drop or disable what changes their number, or name another table");
}

Status RecordResultTable(SqlSession& session, Dialect dialect, const ResultTable& wanted,
                         const FoundTable& written) {
  const std::string table =
      dialect == Dialect::kPostgres ? "sluice.result_tables" : "sluice_result_tables";
  return session
      .Query(fmt::format(
                 "INSERT INTO {} (schema_name, table_name, identity, columns, statement_kind, job,"
                 " written_micros) VALUES ($1, $2, $3, $4, $5, $6, $7)"
                 " ON CONFLICT (schema_name, table_name) DO UPDATE SET identity ="
                 " excluded.identity, columns = excluded.columns, statement_kind ="
                 " excluded.statement_kind, job = excluded.job,"
                 " written_micros = excluded.written_micros",
                 table),
             {written.name.schema, written.name.name,
              written.rows.empty() ? written.identity : written.identity + " " + written.rows,
              written.columns, wanted.kind, wanted.job, WallMicros()})
      .status();
}

std::string ColumnList(const Schema& schema) {
  std::string columns;
  for (const ColumnInfo& column : schema.columns) {
    columns += (columns.empty() ? "" : ", ") + QuoteName(column.name);
  }
  return columns;
}

}  // namespace sluice::catalog
