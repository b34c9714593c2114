#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/result_table_internal.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

// Result tables in SQLite: what exists, and whether it can take the rows.
namespace sluice::catalog {

struct SqliteTarget {
  TableName name;  // with its schema, in the database's spelling
  std::optional<FoundTable> found;
};

// The object of that name; a schema that does not exist is 3F000. Reads all rows of a table that
// looks like one of ours.
Result<SqliteTarget> FindSqliteTarget(SqliteConnection& connection, const TableName& name);
// The table that was just written, for the record.
Result<FoundTable> FindWrittenSqliteTable(SqliteConnection& connection, const TableName& name);

struct SqliteColumn {
  std::string name;
  std::string type;  // as it was declared
  bool generated = false;
};
Result<std::vector<SqliteColumn>> ListSqliteColumns(SqliteConnection& connection,
                                                    const TableName& table);
// The columns of a table, as FoundTable spells them.
Result<std::string> SqliteColumns(SqliteConnection& connection, const TableName& table);

// The number of rows, and a digest of them that does not depend on their order.
Result<std::string> DigestSqliteRows(SqliteConnection& connection, const TableName& table);

// Checks for what would otherwise fail at the end, change rows of other tables, or break objects
// that name the table.
Status CheckSqliteAction(SqliteConnection& connection, const SqliteTarget& target,
                         ResultAction action, const Schema& schema);
// 22003 if a cell of the staging table would be changed by the column to which it is appended.
Status CheckAppendedCells(SqliteConnection& connection, const TableName& table,
                          const TableName& staging, const Schema& schema);
// If a refilled table has other rows than were written, 55000 with the names of its triggers.
Status CheckSqliteArrived(SqliteConnection& connection, const TableName& table,
                          const TableName& staging);

// A staging table next to a result table. A comment in its definition identifies it; it stays when
// the staging table becomes the result, and distinguishes that from any other table of its name.
class SqliteStaging {
 public:
  explicit SqliteStaging(const TableName& beside);
  ~SqliteStaging();
  SqliteStaging(const SqliteStaging&) = delete;
  SqliteStaging& operator=(const SqliteStaging&) = delete;

  const TableName& name() const { return name_; }
  std::string Definition(const Schema& schema) const;

 private:
  const TableName name_;
};
// Drops the staging tables of ended processes, and those of this one whose SqliteStaging is gone
// (the file was locked, or the disk full, when they should have been dropped); only tables with
// such a comment.
Status DropAbandonedStaging(SqliteConnection& connection, const std::string& in_schema);

}  // namespace sluice::catalog
