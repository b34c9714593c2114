#include "catalog/sql/search_path.h"

namespace sluice::catalog {

const std::string_view kSearchPathOfLogin =
    "SELECT pg_catalog.current_setting('search_path') WHERE session_user"
    " OPERATOR(pg_catalog.<>) 'sluice'::pg_catalog.name"
    " OR pg_catalog.to_regnamespace('sluice') IS NULL"
    " OR pg_catalog.to_regclass('sluice.model_versions') IS NOT NULL"
    " OR NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.relnamespace"
    " OPERATOR(pg_catalog.=) pg_catalog.to_regnamespace('sluice')::pg_catalog.oid)";

bool IsOwnSchema(std::string_view name) {
  return name == "sluice" || name == "sluice_stage";
}

std::string WithoutSchemaOfUser(std::string_view search_path) {
  constexpr std::string_view kUser = "$user";
  std::string path;
  bool found = false;
  for (size_t begin = 0; begin < search_path.size();) {
    bool quoted = false;
    size_t end = begin;
    while (end < search_path.size() && (quoted || search_path[end] != ',')) {
      quoted = quoted != (search_path[end] == '"');
      ++end;
    }
    std::string_view schema = search_path.substr(begin, end - begin);
    begin = end + 1;
    while (schema.starts_with(' ')) {
      schema.remove_prefix(1);
    }
    while (schema.ends_with(' ')) {
      schema.remove_suffix(1);
    }
    if (schema == kUser || (schema.size() == kUser.size() + 2 && schema.substr(1, 5) == kUser)) {
      found = true;
      continue;
    }
    path += path.empty() ? "" : ", ";
    path += schema;
  }
  return found ? path : std::string(search_path);
}

}  // namespace sluice::catalog
