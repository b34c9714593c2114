#include "catalog/sql/types_of_others.h"

#include <fmt/core.h>

namespace sluice::catalog {

std::string MakersOfTypes(std::string_view types) {
  // pg_range's rngmultitypid is new in PostgreSQL 14.
  return fmt::format(
      "WITH RECURSIVE reached(type) AS ({} UNION SELECT part.type FROM reached"
      " JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) reached.type, LATERAL ("
      "SELECT t.typbasetype UNION ALL SELECT t.typelem"
      " UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute AS a"
      " WHERE a.attrelid OPERATOR(pg_catalog.=) t.typrelid"
      " AND a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped"
      " UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range AS r"
      " WHERE r.rngtypid OPERATOR(pg_catalog.=) t.oid"
      " OR (pg_catalog.to_jsonb(r) OPERATOR(pg_catalog.->>) 'rngmultitypid')::pg_catalog.oid"
      " OPERATOR(pg_catalog.=) t.oid) AS part(type))"
      " SELECT r.rolname FROM reached"
      " JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) reached.type"
      " JOIN pg_catalog.pg_roles AS r ON r.oid OPERATOR(pg_catalog.=) t.typowner"
      " WHERE t.typtype OPERATOR(pg_catalog.=) ANY ('{{d,c,r,m}}')"
      " AND NOT r.rolsuper AND NOT pg_catalog.pg_has_role(t.typowner, 'USAGE')",
      types);
}

}  // namespace sluice::catalog
