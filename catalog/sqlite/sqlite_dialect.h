#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::catalog {

// Translates what PostgreSQL's clients write into SQLite's dialect: x::type, E'...', $tag$...$tag$
// and ILIKE; nullopt: there is none of them, the text needs no change. `catalog`: the statement
// names a catalog, so the constructs of such statements are translated, too (operators and
// functions of pg_catalog, arrays, regular expressions). Pure; thread-safe.
std::optional<std::string> InSqliteDialect(std::string_view sql, bool catalog);

}  // namespace sluice::catalog
