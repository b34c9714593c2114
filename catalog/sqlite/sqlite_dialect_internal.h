#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/sql/declared_type.h"

// How PostgreSQL's clients write a statement, and how SQLite reads it. Pure; thread-safe.
namespace sluice::catalog {

// Names something that PostgreSQL's clients find in a catalog: pg_..., information_schema,
// current_user.
bool NamesPgCatalog(std::string_view sql);

// A function that is written without parentheses: current_user.
bool IsSessionWord(std::string_view lower);

// x::type, E'...' and ILIKE in SQLite's words; nullopt: there is none of them, the text stays as it
// is. `catalog`: the statement names a catalog, and what those statements have is rewritten, too
// (operators and functions of pg_catalog, arrays, regular expressions).
std::optional<std::string> InSqliteDialect(std::string_view sql, bool catalog);

// The relations of pg_catalog and information_schema that a statement names: "pg_class",
// "information_schema.columns".
std::vector<std::string> NamedPgRelations(std::string_view sql);

// What the items of a statement's select list are called and which type they have, as far as the
// text alone tells: a literal, a function, an operator. Empty where there is a '*' among them, or
// no select.
struct SelectItem {
  std::string name;
  DeclaredType type;
};
std::vector<SelectItem> SelectItems(std::string_view sql);

}  // namespace sluice::catalog
