#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/sqlstate.h"
#include "catalog/sqlite/sqlite_result_table_internal.h"
#include "catalog/sqlite/sqlite_types_internal.h"

namespace sluice::catalog {
namespace {

// By type, numbers stay numbers and text stays text; CheckAppendedCells checks each cell.
bool Fits(DataType type, const std::string& declared) {
  const std::optional<DataType> target = TypeOfDeclaration(declared);
  const auto is_number = [](DataType t) {
    return t == DataType::kBool || t == DataType::kInt64 || t == DataType::kDouble;
  };
  if (!target || *target == type) {
    return true;
  }
  return *target == DataType::kText ? !is_number(type) : is_number(*target) && is_number(type);
}

const SqliteColumn* FindSqliteColumn(const std::vector<SqliteColumn>& columns,
                                     std::string_view name) {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const SqliteColumn& column) {
    return LowerAscii(column.name) == LowerAscii(name);
  });
  return found == columns.end() ? nullptr : &*found;
}

Status CheckAppend(SqliteConnection& connection, const TableName& table, const Schema& schema) {
  ASSIGN_OR_RETURN(const std::vector<SqliteColumn> columns, ListSqliteColumns(connection, table));
  std::vector<std::string> names;
  names.reserve(columns.size());
  for (const SqliteColumn& column : columns) {
    names.push_back(column.name);
  }
  Status errors;
  for (const ColumnInfo& wanted : schema.columns) {
    const SqliteColumn* fitting = FindSqliteColumn(columns, wanted.name);
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

// Foreign keys of other tables that refer to this one: (table, ON DELETE).
Result<SqlRows> ForeignKeys(SqliteConnection& connection, const TableName& table) {
  return connection.Query(fmt::format("SELECT m.name, f.on_delete FROM {}.sqlite_schema m,"
                                      " pragma_foreign_key_list(m.name, $2) f"
                                      " WHERE m.type = 'table' AND lower(f.\"table\") = lower($1)"
                                      " AND lower(m.name) <> lower($1) ORDER BY 1",
                                      QuoteName(table.schema)),
                          {table.name, table.schema});
}

// Deleting rows would delete or change rows of another table.
Status CheckRefill(SqliteConnection& connection, const TableName& table) {
  ASSIGN_OR_RETURN(const SqlRows keys, ForeignKeys(connection, table));
  for (const std::vector<Value>& key : keys) {
    const std::string on_delete = TextCell(key[1]);
    if (on_delete != "NO ACTION" && on_delete != "RESTRICT") {
      return FailedPrecondition(fmt::format("new rows for table {} would change table {}: its "
                                            "foreign key follows the rows that are deleted",
                                            table.Text(), TextCell(key[0])))
          .Hint("a foreign key without ON DELETE lets the rows come back; or name another table");
    }
  }
  return OkStatus();
}

// The name in a token, without its quotes; "" if it is not a name.
std::string NameIn(std::string_view token, SqlToken::Kind kind) {
  if (kind == SqlToken::Kind::kString) {  // SQLite also accepts 'name'
    return token.size() < 2 ? "" : std::string(token.substr(1, token.size() - 2));
  }
  const Result<TableName> name = ParseTableName(token, Dialect::kSqlite);
  return name.ok() ? name->name : "";
}

Status CannotReplace(const TableName& table, std::string_view why) {
  return FailedPrecondition(fmt::format("table {} cannot be replaced: {}", table.Text(), why))
      .SqlState("2BP01")
      .Hint("drop that first, or name another table");
}

// When SQLite drops a table, objects that name it fail from then on: views, triggers of other
// tables and virtual tables over it. Its own triggers are dropped with it.
Status CheckReplace(SqliteConnection& connection, const TableName& table) {
  ASSIGN_OR_RETURN(const SqlRows keys, ForeignKeys(connection, table));
  if (!keys.empty()) {
    return CannotReplace(
        table, fmt::format("a foreign key of table {} refers to it", TextCell(keys[0][0])));
  }
  const std::string wanted = LowerAscii(table.name);
  ASSIGN_OR_RETURN(const SqlRows others,
                   connection.Query(fmt::format("SELECT type, name, sql FROM {}.sqlite_schema"
                                                " WHERE (type IN ('view', 'trigger') OR"
                                                " sql LIKE 'CREATE VIRTUAL %')"
                                                " AND lower(tbl_name) <> lower($1) ORDER BY 1, 2",
                                                QuoteName(table.schema)),
                                    {table.name}));
  for (const std::vector<Value>& other : others) {
    const std::string sql = TextCell(other[2]);
    for (const SqlToken& token : TokenizeSql(sql, Dialect::kSqlite)) {
      const std::string_view text =
          std::string_view(sql).substr(token.begin, token.end - token.begin);
      if (LowerAscii(NameIn(text, token.kind)) == wanted) {
        return CannotReplace(table,
                             fmt::format("{} {} names it", TextCell(other[0]), TextCell(other[1])));
      }
    }
  }
  return OkStatus();
}

}  // namespace

Status CheckSqliteAction(SqliteConnection& connection, const SqliteTarget& target,
                         ResultAction action, const Schema& schema) {
  switch (action) {
    case ResultAction::kMake:
      return OkStatus();
    case ResultAction::kRefill:
      return CheckRefill(connection, target.name);
    case ResultAction::kReplace:
      return CheckReplace(connection, target.name);
    case ResultAction::kAppend:
      break;
  }
  return CheckAppend(connection, target.name, schema);
}

Status CheckAppendedCells(SqliteConnection& connection, const TableName& table,
                          const TableName& staging, const Schema& schema) {
  ASSIGN_OR_RETURN(const std::vector<SqliteColumn> columns, ListSqliteColumns(connection, table));
  ASSIGN_OR_RETURN(const std::vector<SqliteColumn> staged, ListSqliteColumns(connection, staging));
  // A table with the same declarations shows what SQLite makes of a cell, next to the original.
  // ("ANY", which keeps it, is a type of STRICT tables only.)
  const SqliteStaging place({"temp", ""});
  const TableName& tried = place.name();
  for (const ColumnInfo& wanted : schema.columns) {
    const SqliteColumn* column = FindSqliteColumn(columns, wanted.name);
    const SqliteColumn* from = FindSqliteColumn(staged, wanted.name);
    if (column == nullptr || from == nullptr) {
      return Internal(fmt::format("column '{}' is gone", wanted.name));
    }
    const std::string type = LowerAscii(column->type);
    if (type.empty() || type == "any" || type == LowerAscii(from->type)) {
      continue;
    }
    RETURN_IF_ERROR(connection.Run(
        fmt::format("CREATE TABLE {} (became {}, was)", tried.Quoted(), QuoteName(column->type))));
    RETURN_IF_ERROR(
        connection.Run(fmt::format("INSERT INTO {0} SELECT {1}, {1} FROM {2}", tried.Quoted(),
                                   QuoteName(wanted.name), staging.Quoted())));
    // Without the plus, one of the two would be converted before the comparison.
    ASSIGN_OR_RETURN(const SqlRows changed,
                     connection.Query(fmt::format("SELECT quote(was), quote(became) FROM {}"
                                                  " WHERE +became IS NOT +was LIMIT 1",
                                                  tried.Quoted()),
                                      {}));
    if (!changed.empty()) {
      return DatabaseError("22003",
                           fmt::format("column '{}' of table {} is {}: it would hold {} as {}",
                                       column->name, table.Text(), column->type,
                                       TextCell(changed[0][0]), TextCell(changed[0][1])))
          .Hint("convert it in the SELECT, or name another table");
    }
    RETURN_IF_ERROR(connection.Run("DROP TABLE " + tried.Quoted()));
  }
  return OkStatus();
}

Status CheckSqliteArrived(SqliteConnection& connection, const TableName& table,
                          const TableName& staging) {
  const auto count = [&](const TableName& rows) {
    return connection.QueryInteger("SELECT count(*) FROM " + rows.Quoted());
  };
  ASSIGN_OR_RETURN(const int64_t arrived, count(table));
  ASSIGN_OR_RETURN(const int64_t written, count(staging));
  if (arrived == written) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const SqlRows triggers,
                   connection.Query(fmt::format("SELECT group_concat('trigger ' || name, ', ')"
                                                " FROM {}.sqlite_schema WHERE type = 'trigger'"
                                                " AND lower(tbl_name) = lower($1)",
                                                QuoteName(table.schema)),
                                    {table.name}));
  return CheckArrived(arrived, written, IsNull(triggers[0][0]) ? "" : TextCell(triggers[0][0]));
}

}  // namespace sluice::catalog
