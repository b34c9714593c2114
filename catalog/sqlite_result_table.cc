#include "catalog/sqlite_result_table_internal.h"

#include <fmt/core.h>

#include <sstream>
#include <utility>
#include <vector>

#include "base/process.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/sqlite_insert_internal.h"
#include "catalog/sqlite_types_internal.h"
#include "catalog/sqlstate.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kStagingPrefix = "sluice_new_";
constexpr std::string_view kMark = "/* sluice ";
constexpr std::string_view kMarkEnd = " */";

// What the comment in a definition says.
struct Mark {
  std::string token;  // nobody else has it
  ProcessIdentity process;
};

std::optional<Mark> FindMark(std::string_view definition) {
  const size_t begin = definition.rfind(kMark);
  const size_t end = begin == std::string_view::npos ? begin : definition.find(kMarkEnd, begin);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const size_t text = begin + kMark.size();
  std::istringstream words{std::string(definition.substr(text, end - text))};
  Mark mark;
  words >> mark.token >> mark.process.pid >> mark.process.started;
  std::getline(words >> std::ws, mark.process.place);
  return mark.token.empty() || words.bad() ? std::nullopt : std::optional<Mark>(std::move(mark));
}

struct Column {
  std::string name;
  std::string type;
  bool generated = false;
};

Result<std::vector<Column>> ColumnsOf(SqliteConnection& connection, const TableName& table) {
  ASSIGN_OR_RETURN(const SqlRows rows,
                   connection.Query("SELECT name, type, hidden FROM pragma_table_xinfo($1, $2)",
                                    {table.name, table.schema}));
  std::vector<Column> columns;
  for (const std::vector<Value>& row : rows) {
    columns.push_back({TextCell(row[0]), TextCell(row[1]), IntegerCell(row[2]) != 0});
  }
  return columns;
}

// Without a change that SQLite would make in silence: text that stays text in a column of numbers.
bool Fits(DataType type, const std::string& declared) {
  const std::optional<DataType> target = TypeOfDeclaration(declared);
  const auto is_number = [](DataType t) {
    return t == DataType::kBool || t == DataType::kInt64 || t == DataType::kDouble;
  };
  return !target || *target == type || *target == DataType::kText ||
         (is_number(*target) && is_number(type));
}

Status CheckAppend(SqliteConnection& connection, const TableName& table, const Schema& schema) {
  ASSIGN_OR_RETURN(const std::vector<Column> columns, ColumnsOf(connection, table));
  std::vector<std::string> names;
  for (const Column& column : columns) {
    names.push_back(column.name);
  }
  Status errors;
  for (const ColumnInfo& wanted : schema.columns) {
    const Column* fitting = nullptr;
    for (const Column& column : columns) {
      if (LowerAscii(column.name) == LowerAscii(wanted.name)) {
        fitting = &column;
      }
    }
    if (fitting == nullptr) {
      const auto nearest = NearestName(wanted.name, names);
      Status missing = ColumnNotFound(fmt::format(
          "table {} has no column '{}', which the result has", table.Text(), wanted.name));
      errors.Add(nearest ? std::move(missing).Hint(
                               fmt::format("did you mean '{}'? name it with AS", *nearest))
                         : missing);
    } else if (fitting->generated) {
      errors.Add(InvalidArgument(fmt::format("column '{}' of table {} is generated", fitting->name,
                                             table.Text()))
                     .SqlState("428C9"));
    } else if (!Fits(wanted.type, fitting->type)) {
      errors.Add(
          InvalidArgument(fmt::format("column '{}' of table {} is {}, and the result's is {}",
                                      fitting->name, table.Text(), fitting->type,
                                      DataTypeName(wanted.type)))
              .SqlState("42804"));
    }
  }
  return errors;
}

// Deleting rows would delete or change those of another table.
Status CheckForeignKeys(SqliteConnection& connection, const TableName& table) {
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      connection.Query(fmt::format("SELECT m.name FROM {}.sqlite_schema m,"
                                   " pragma_foreign_key_list(m.name, $2) f WHERE m.type = 'table'"
                                   " AND lower(f.\"table\") = lower($1)"
                                   " AND lower(m.name) <> lower($1)"
                                   " AND f.on_delete NOT IN ('NO ACTION', 'RESTRICT') LIMIT 1",
                                   QuoteName(table.schema)),
                       {table.name, table.schema}));
  if (rows.empty()) {
    return OkStatus();
  }
  return FailedPrecondition(fmt::format("new rows for table {} would change table {}: its foreign "
                                        "key follows the rows that are deleted",
                                        table.Text(), TextCell(rows[0][0])))
      .Hint("a foreign key without ON DELETE lets the rows come back; or name another table");
}

}  // namespace

Result<SqliteTarget> FindSqliteTarget(SqliteConnection& connection, const TableName& name) {
  SqliteTarget target = {{name.schema.empty() ? "main" : LowerAscii(name.schema), name.name},
                         std::nullopt};
  RETURN_IF_ERROR(CheckResultName(target.name, Dialect::kSqlite));
  ASSIGN_OR_RETURN(
      const SqlRows schemas,
      connection.Query("SELECT name FROM pragma_database_list WHERE lower(name) = lower($1)",
                       {target.name.schema}));
  if (schemas.empty()) {
    return InvalidArgument(fmt::format("there is no database '{}' here", name.schema))
        .SqlState("3F000")
        .Hint("name a table of the main database");
  }
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      connection.Query(fmt::format("SELECT s.name, s.type, coalesce(s.sql, ''),"
                                   " coalesce((SELECT l.type FROM pragma_table_list l WHERE"
                                   "  l.schema = $2 AND l.name = s.name), s.type)"
                                   " FROM {}.sqlite_schema s"
                                   " WHERE lower(s.name) = lower($1) AND s.type <> 'trigger'",
                                   QuoteName(target.name.schema)),
                       {target.name.name, target.name.schema}));
  if (rows.empty()) {
    return target;
  }
  FoundTable found;
  target.name.name = TextCell(rows[0][0]);
  found.name = target.name;
  found.kind = TextCell(rows[0][3]) == "virtual" || TextCell(rows[0][3]) == "shadow"
                   ? TextCell(rows[0][3]) + " table"
                   : TextCell(rows[0][1]);
  if (found.kind != "index") {
    ASSIGN_OR_RETURN(found.columns, SqliteColumns(connection, found.name));
  }
  if (const std::optional<Mark> mark = FindMark(TextCell(rows[0][2]))) {
    found.identity = mark->token;
    ASSIGN_OR_RETURN(const int64_t recorded,
                     connection.QueryInteger("SELECT count(*) FROM main.sqlite_schema"
                                             " WHERE name = 'sluice_result_tables'"));
    if (recorded > 0) {
      ASSIGN_OR_RETURN(const SqlRows record,
                       connection.Query("SELECT identity, columns FROM main.sluice_result_tables"
                                        " WHERE identity = $1 AND lower(table_name) = lower($2)",
                                        {found.identity, found.name.name}));
      if (!record.empty()) {
        found.recorded_identity = TextCell(record[0][0]);
        found.recorded_columns = TextCell(record[0][1]);
      }
    }
  }
  target.found = std::move(found);
  return target;
}

Result<std::string> SqliteColumns(SqliteConnection& connection, const TableName& table) {
  ASSIGN_OR_RETURN(const std::vector<Column> columns, ColumnsOf(connection, table));
  std::string text;
  for (const Column& column : columns) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", TableName{"", column.name}.Text(),
                        column.type, column.generated ? " generated" : "");
  }
  return text;
}

Status CheckSqliteAction(SqliteConnection& connection, const SqliteTarget& target,
                         ResultAction action, const Schema& schema) {
  switch (action) {
    case ResultAction::kMake:
      return OkStatus();
    case ResultAction::kRefill:
    case ResultAction::kReplace:
      return CheckForeignKeys(connection, target.name);
    case ResultAction::kAppend:
      break;
  }
  return CheckAppend(connection, target.name, schema);
}

TableName NewSqliteStaging(const TableName& beside) {
  return {beside.schema, std::string(kStagingPrefix) + RandomSuffix()};
}

std::string SqliteStagingDefinition(const TableName& staging, const Schema& schema) {
  std::string definition = SqliteTableDefinition(staging.Quoted(), schema);
  const ProcessIdentity process = CurrentProcess();
  definition.insert(
      definition.size() - 1,
      fmt::format(" {}{} {} {} {}{}", kMark, staging.name.substr(kStagingPrefix.size()),
                  process.pid, process.started, process.place, kMarkEnd));
  return definition;
}

Status DropAbandonedStaging(SqliteConnection& connection, const std::string& in_schema) {
  ASSIGN_OR_RETURN(const SqlRows rows,
                   connection.Query(fmt::format("SELECT name, sql FROM {}.sqlite_schema"
                                                " WHERE type = 'table'"
                                                " AND substr(name, 1, length($1)) = $1",
                                                QuoteName(in_schema)),
                                    {std::string(kStagingPrefix)}));
  for (const std::vector<Value>& row : rows) {
    const std::string name = TextCell(row[0]);
    const std::optional<Mark> mark = FindMark(TextCell(row[1]));
    if (mark && name == std::string(kStagingPrefix) + mark->token &&
        FindProcess(mark->process) == ProcessState::kGone) {
      RETURN_IF_ERROR(connection.Run("DROP TABLE " + TableName{in_schema, name}.Quoted()));
    }
  }
  return OkStatus();
}

}  // namespace sluice::catalog
