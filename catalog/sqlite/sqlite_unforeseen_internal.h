#pragma once

#include <string_view>

#include "base/status.h"

// Queries of PostgreSQL's catalogs that SQLite cannot run: those that are wrong, and those that
// nobody has foreseen. Pure; thread-safe.
namespace sluice::catalog {

// SQLite's error with the place of the name that it misses, where it has none.
Status AtName(Status error, std::string_view sql);

// `sql` names a catalog, and SQLite has `refused` it. OK: PostgreSQL may well take it (it has an
// expression, a function or a relation that we do not know), and a client that looks around goes on
// best without rows. Else what PostgreSQL would refuse, too: a syntax error, in its own words, a
// column or a table of the user's that is not there.
Status ErrorOfCatalogQuery(std::string_view sql, const Status& refused);

}  // namespace sluice::catalog
