#include <algorithm>
#include <vector>

#include "catalog/sqlite/sqlite_pg_catalog_internal.h"

namespace sluice::catalog {
namespace {

// A relation a line: "schema.name column type, column type".
constexpr std::string_view kRelationLines =
#include "catalog/sqlite/sqlite_pg_relations.inc"
    ;

// What is left of `text` up to `end`, and of `text` what follows that.
std::string_view TakeUpTo(char end, std::string_view* text) {
  const std::string_view taken = text->substr(0, text->find(end));
  text->remove_prefix(std::min(taken.size() + 1, text->size()));
  return taken;
}

// The columns of PostgreSQL 15's catalogs, from its own pg_attribute, so that queries of any client
// find the columns that they name. Most of these relations have no rows here.
const std::vector<PgRelation>& Relations() {
  static const std::vector<PgRelation> relations = [] {
    std::vector<PgRelation> read;
    std::string_view text = kRelationLines;
    TakeUpTo('\n', &text);  // the literal begins on a line of its own
    while (!text.empty()) {
      std::string_view line = TakeUpTo('\n', &text);
      const std::string_view schema = TakeUpTo('.', &line);
      const std::string_view name = TakeUpTo(' ', &line);
      read.push_back({schema, name, line});
    }
    return read;
  }();
  return relations;
}

}  // namespace

const PgRelation* FindPgRelation(std::string_view name) {
  constexpr std::string_view kInformationSchema = "information_schema.";
  const bool information = name.starts_with(kInformationSchema);
  const std::string_view plain = information ? name.substr(kInformationSchema.size()) : name;
  const std::vector<PgRelation>& relations = Relations();
  const auto found =
      std::find_if(relations.begin(), relations.end(), [&](const PgRelation& relation) {
        return relation.name == plain && (relation.schema == "information_schema") == information;
      });
  return found == relations.end() ? nullptr : &*found;
}

bool HasPgColumn(std::string_view name, std::string_view type) {
  const std::string column = std::string(name) + " " + std::string(type);
  const std::vector<PgRelation>& relations = Relations();
  return std::any_of(relations.begin(), relations.end(), [&](const PgRelation& relation) {
    const std::string_view columns = relation.columns;
    const size_t at = columns.find(column);
    return at != std::string_view::npos && (at == 0 || columns[at - 1] == ' ') &&
           (at + column.size() == columns.size() || columns[at + column.size()] == ',');
  });
}

}  // namespace sluice::catalog
