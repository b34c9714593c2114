#pragma once

#include <string>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/postgres/postgres_connection_internal.h"

// Writes rows to PostgreSQL: the declared types of the columns, and the cells in COPY's text
// format.
namespace sluice::catalog {

// CREATE TABLE with the columns' types in the spelling of the caller's database, if this server
// knows it.
Result<std::string> PostgresTableDefinition(PostgresConnection& connection,
                                            const std::string& quoted_table, const Schema& schema);

// The rows in COPY's text format.
std::string CopyText(const RowBatch& batch);

// One COPY with these rows, read until libpq is idle again. `context`, if given, receives the
// server's description of an error's place.
Status CopyRows(PostgresConnection& connection, const std::string& copy, std::string_view text,
                std::string* context = nullptr);

}  // namespace sluice::catalog
