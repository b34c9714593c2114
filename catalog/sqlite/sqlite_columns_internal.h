#pragma once

#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"

// The columns of a SELECT. Errors are SQLite's, or say why the statement is not a SELECT that can
// be read.
namespace sluice::catalog {

class SqliteConnection;

// The columns of a prepared SELECT. For those without a declared type the statement is run to read
// a small sample of their cells.
Result<Schema> DescribeSqliteSelect(SqliteConnection& connection, std::string_view select);

// Whether the columns are keys of their tables.
Result<std::vector<ColumnKey>> SqliteKeys(SqliteConnection& connection, std::string_view select);

}  // namespace sluice::catalog
