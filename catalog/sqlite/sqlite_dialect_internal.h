#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/sql/declared_type.h"

// Translates statements as PostgreSQL's clients write them into SQLite's dialect. Pure;
// thread-safe.
namespace sluice::catalog {

// Names something in PostgreSQL's catalogs: pg_..., information_schema, current_user.
bool NamesPgCatalog(std::string_view sql);

// A function that is written without parentheses: current_user.
bool IsSessionWord(std::string_view lower);

// Translates x::type, E'...', $tag$...$tag$ and ILIKE; nullopt: there is none of them, the text
// needs no change. `catalog`: the statement names a catalog, so the constructs of such statements
// are translated, too (operators and functions of pg_catalog, arrays, regular expressions).
std::optional<std::string> InSqliteDialect(std::string_view sql, bool catalog);

// The relations of pg_catalog and information_schema that a statement names: "pg_class",
// "information_schema.columns".
std::vector<std::string> NamedPgRelations(std::string_view sql);

// The name and the type of each item of a statement's select list, as far as the text alone tells:
// a literal, a function, an operator. Empty if there is a '*' among them, or no select.
struct SelectItem {
  std::string name;
  DeclaredType type;
};
std::vector<SelectItem> SelectItems(std::string_view sql);

}  // namespace sluice::catalog
