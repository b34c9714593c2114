#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/result_table.h"
#include "catalog/sql/sql_session.h"

// Decisions about result tables that are the same for both databases.
namespace sluice::catalog {

// The object found under the name of a result table.
struct FoundTable {
  TableName name;
  std::string identity;  // distinguishes it from another table of its name
  std::string kind;      // "table", "partitioned table", "view" ...
  std::string columns;   // with their types
  // A digest of its rows, if nothing else distinguishes it from a copy of its definition (SQLite).
  std::string rows;
  // The catalog's record of what Sluice wrote under this name; "" if none.
  std::string recorded_identity;
  std::string recorded_columns;
  std::string recorded_rows;
  // It is the table that Sluice wrote, with unchanged columns.
  bool HasOurShape() const {
    return !identity.empty() && identity == recorded_identity && columns == recorded_columns;
  }
  // Sluice wrote it, and its rows are unchanged.
  bool IsOurs() const { return HasOurShape() && rows == recorded_rows; }
};

// `columns`: those of the new rows, as FoundTable spells them; nullopt: not known yet.
// 42P07: a table that would be destroyed; 42809: something that is not a table.
Result<ResultAction> DecideResultAction(const ResultTable& wanted,
                                        const std::optional<FoundTable>& found,
                                        const std::optional<std::string>& columns);

// Tables of the catalog and of the database itself are refused as results (42939) in any case; and
// the database must store the name untruncated (42622).
Status CheckResultName(const TableName& name, Dialect dialect);
inline constexpr size_t kMostPostgresNameBytes = 63;
// PostgreSQL truncates longer names silently (42622).
Status CheckPostgresName(const std::string& name);

// 0A000: the session has a temporary table (view ...) with the name of `result`, which would be
// written elsewhere.
Status FindTemporaryTable(std::string_view kind, const TableName& result);

// A result written over its own old rows must have exactly the written rows (55000). `arrived`:
// rows of the table; `hooks`: the triggers and rules that it runs on INSERT, "" for none.
Status CheckArrived(int64_t arrived, int64_t written, const std::string& hooks);

// Records that Sluice wrote the table; inside the transaction that writes it.
Status RecordResultTable(SqlSession& session, Dialect dialect, const ResultTable& wanted,
                         const FoundTable& written);

// "a", "b", "c": for INSERT and COPY.
std::string ColumnList(const Schema& schema);

}  // namespace sluice::catalog
