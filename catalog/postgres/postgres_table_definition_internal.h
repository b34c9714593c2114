#pragma once

#include <string>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/postgres/postgres_connection_internal.h"

// Makes tables that this process writes, with the declared types of their columns.
namespace sluice::catalog {

// With the columns' types in the spelling of the caller's database, if this server knows it. To
// write a value of a domain runs its checks, whoever made them: what another role made, unless this
// one is a member of it or it is a superuser, becomes the type that the domain is of, or text. A
// table that exists is an error (42P07).
Status MakePostgresTable(PostgresConnection& connection, const std::string& quoted_table,
                         const Schema& schema);

}  // namespace sluice::catalog
