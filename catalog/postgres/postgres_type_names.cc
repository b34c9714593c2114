#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "catalog/postgres/postgres_database_internal.h"

namespace sluice::catalog {
namespace {

struct NamedType {
  Oid oid;
  BuiltInType type;
};

// The types of most columns, so that few statements have to ask for their names. Object identifiers
// of built-in types never change (pg_type.dat).
constexpr NamedType kBuiltInTypes[] = {
    {16, {"boolean", "pg_catalog.boolsend"}},
    {17, {"bytea", "pg_catalog.byteasend"}},
    {18, {"\"char\"", "pg_catalog.charsend"}},
    {19, {"name", "pg_catalog.namesend"}},
    {20, {"bigint", "pg_catalog.int8send"}},
    {21, {"smallint", "pg_catalog.int2send"}},
    {23, {"integer", "pg_catalog.int4send"}},
    {25, {"text", "pg_catalog.textsend"}},
    {26, {"oid", "pg_catalog.oidsend"}},
    {114, {"json", "pg_catalog.json_send"}},
    {700, {"real", "pg_catalog.float4send"}},
    {701, {"double precision", "pg_catalog.float8send"}},
    {1043, {"character varying", "pg_catalog.varcharsend"}},
    {1082, {"date", "pg_catalog.date_send"}},
    {1114, {"timestamp without time zone", "pg_catalog.timestamp_send"}},
    {1184, {"timestamp with time zone", "pg_catalog.timestamptz_send"}},
    {1700, {"numeric", "pg_catalog.numeric_send"}},
    {2950, {"uuid", "pg_catalog.uuid_send"}},
    {3802, {"jsonb", "pg_catalog.jsonb_send"}},
};

}  // namespace

std::optional<BuiltInType> FindBuiltInType(Oid oid, int modifier) {
  const auto* const found = std::find_if(std::begin(kBuiltInTypes), std::end(kBuiltInTypes),
                                         [oid](const NamedType& each) { return each.oid == oid; });
  if (modifier >= 0 || found == std::end(kBuiltInTypes)) {
    return std::nullopt;
  }
  return found->type;
}

std::string PostgresTypeNames::Name(Oid oid, int modifier) {
  if (const std::optional<BuiltInType> known = FindBuiltInType(oid, modifier)) {
    return std::string(known->name);
  }
  const std::pair<Oid, int> type(oid, modifier);
  {
    MutexLock lock(mutex_);
    const auto known = known_.find(type);
    if (known != known_.end()) {
      return known->second;
    }
  }
  const auto connection = pool_.Take();
  if (!connection.ok()) {
    return "";
  }
  const auto name =
      (*connection)
          ->Ask(fmt::format("SELECT pg_catalog.format_type(t.oid, {}) FROM pg_catalog.pg_type AS t"
                            " WHERE t.oid OPERATOR(pg_catalog.=) {}::pg_catalog.oid",
                            modifier, oid));
  if (!name.ok() || PQntuples(name->get()) == 0) {
    return "";
  }
  MutexLock lock(mutex_);
  return known_[type] = PostgresText(name->get(), 0, 0);
}

}  // namespace sluice::catalog
