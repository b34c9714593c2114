#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/result_table.h"
#include "catalog/sql/sql_session.h"

// What both databases decide alike about result tables.
namespace sluice::catalog {

// What stands under the name of a result table.
struct FoundTable {
  TableName name;
  std::string identity;  // tells it from another table of its name
  std::string kind;      // "table", "partitioned table", "view" ...
  std::string columns;   // with their types
  // A digest of its rows, where nothing else tells it from a copy of its definition (SQLite).
  std::string rows;
  // What the catalog says Sluice wrote under this name; "" when nothing.
  std::string recorded_identity;
  std::string recorded_columns;
  std::string recorded_rows;
  // What Sluice wrote is known by these, and nobody has changed its columns.
  bool HasOurShape() const {
    return !identity.empty() && identity == recorded_identity && columns == recorded_columns;
  }
  // Sluice wrote it beyond doubt.
  bool IsOurs() const { return HasOurShape() && rows == recorded_rows; }
};

// `columns`: those of the new rows, as FoundTable spells them; nullopt: not known yet.
// 42P07: a table that would be destroyed; 42809: something that is not a table.
Result<ResultAction> DecideResultAction(const ResultTable& wanted,
                                        const std::optional<FoundTable>& found,
                                        const std::optional<std::string>& columns);

// Tables of the catalog and of the database itself are nobody's result (42939), whatever is said;
// and a name must be one that the database keeps whole (42622).
Status CheckResultName(const TableName& name, Dialect dialect);
// PostgreSQL cuts longer names off and goes on (42622).
Status CheckPostgresName(const std::string& name);

// 0A000: the session has a temporary table (view ...) of the name of `result`, which would be
// written elsewhere.
Status TemporaryNamesake(std::string_view kind, const TableName& result);

// A result that is written over its own old rows has the rows that came, and no others (55000).
// `arrived`: rows of the table; `hooks`: the triggers and rules that it runs on INSERT, "" for
// none.
Status CheckArrived(int64_t arrived, int64_t written, const std::string& hooks);

// Writes down that Sluice wrote the table; inside the transaction that does.
Status RecordResultTable(SqlSession& session, Dialect dialect, const ResultTable& wanted,
                         const FoundTable& written);

// "a", "b", "c": for INSERT and COPY.
std::string ColumnList(const Schema& schema);

}  // namespace sluice::catalog
