#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/result_table.h"
#include "catalog/sql_session.h"

// What both databases decide alike about result tables.
namespace sluice::catalog {

// What stands under the name of a result table.
struct FoundTable {
  TableName name;
  std::string identity;  // tells it from another table of its name
  std::string kind;      // "table", "partitioned table", "view" ...
  std::string columns;   // with their types
  // What the catalog says Sluice wrote under this name; "" when nothing.
  std::string recorded_identity;
  std::string recorded_columns;
  // Sluice wrote it, and nobody has changed its columns.
  bool IsOurs() const {
    return !identity.empty() && identity == recorded_identity && columns == recorded_columns;
  }
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

// Writes down that Sluice wrote the table; inside the transaction that does.
Status RecordResultTable(SqlSession& session, Dialect dialect, const ResultTable& wanted,
                         const FoundTable& written);

// "a", "b", "c": for INSERT and COPY.
std::string ColumnList(const Schema& schema);

}  // namespace sluice::catalog
