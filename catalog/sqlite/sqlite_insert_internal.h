#pragma once

#include <sqlite3.h>

#include <string>

#include "base/row_batch.h"

// Writes rows to SQLite: the declared types of the columns, and the cells as bound values.
namespace sluice::catalog {

std::string SqliteTableDefinition(const std::string& quoted_table, const Schema& schema);
// INSERT with one parameter for each column.
std::string Insertion(const std::string& quoted_table, const Schema& schema);
// Binds a cell to parameter `place` (from 1); its bytes must outlive the next step. A result code.
int BindCell(sqlite3_stmt* statement, int place, const RowBatch::Column& column, size_t row);

}  // namespace sluice::catalog
