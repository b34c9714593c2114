#pragma once

#include <string_view>

#include "base/status.h"

// Queries of PostgreSQL's catalogs that SQLite cannot run: decides whether they are wrong or merely
// not supported. Pure; thread-safe.
namespace sluice::catalog {

// SQLite's error, placed at the name that is missing if it has no place.
Status AtName(Status error, std::string_view sql);

// `sql` names a catalog, and SQLite has `refused` it. OK: PostgreSQL may accept it (it has an
// expression, a function or a relation that we do not know), and a client that browses the database
// is best served by an answer without rows. Otherwise the error of PostgreSQL: a syntax error in
// its own words, or a column or a table of the user's that does not exist.
Status ErrorOfCatalogQuery(std::string_view sql, const Status& refused);

}  // namespace sluice::catalog
