#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"

// What the server says about the columns of a SELECT; reads none of its rows. Errors are the
// server's, or say why the statement is not a SELECT that can be read.
namespace sluice::catalog {

class PostgresConnection;

// The columns of a SELECT, without running it.
Result<Schema> DescribePostgresSelect(PostgresConnection& connection, std::string_view select);
// An expression for the binary form in which the server sends the column, as hexadecimal text in
// which the column is decoded as bytes whatever the session's bytea_output is. `name`: the column's
// in the statement.
std::string BinaryForm(std::string_view name, const ColumnInfo& column);
// Whether the columns are keys of their tables.
Result<std::vector<ColumnKey>> PostgresKeys(PostgresConnection& connection,
                                            std::string_view select);
// Fills in the declarations of copies of the columns: domains, and every type with its schema.
Status DescribeDeclarations(PostgresConnection& connection, std::string_view select,
                            Schema* schema);

// Adds the nearest table's name to the error that there is no such table: PostgreSQL suggests
// columns with a similar name, but not tables.
Result<Schema> WithNearestName(PostgresConnection& connection, Result<Schema> described);

}  // namespace sluice::catalog
