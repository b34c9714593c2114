#include <fmt/core.h>

#include <utility>

#include "catalog/postgres/postgres_database_internal.h"

namespace sluice::catalog {
namespace {

// The types of most columns, so that a plain statement needs no second connection to name them.
// Object identifiers of built-in types never change (pg_type.dat).
std::string_view BuiltInTypeName(Oid oid) {
  switch (oid) {
    case 16:
      return "boolean";
    case 17:
      return "bytea";
    case 18:
      return "\"char\"";
    case 19:
      return "name";
    case 20:
      return "bigint";
    case 21:
      return "smallint";
    case 23:
      return "integer";
    case 25:
      return "text";
    case 26:
      return "oid";
    case 114:
      return "json";
    case 700:
      return "real";
    case 701:
      return "double precision";
    case 1043:
      return "character varying";
    case 1082:
      return "date";
    case 1114:
      return "timestamp without time zone";
    case 1184:
      return "timestamp with time zone";
    case 1700:
      return "numeric";
    case 2950:
      return "uuid";
    case 3802:
      return "jsonb";
    default:
      return "";
  }
}

}  // namespace

std::string PostgresTypeNames::Name(Oid oid, int modifier) {
  if (modifier < 0 && !BuiltInTypeName(oid).empty()) {
    return std::string(BuiltInTypeName(oid));
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
  const auto name = (*connection)
                        ->Ask(fmt::format("SELECT format_type(oid, {}) FROM pg_type WHERE oid = {}",
                                          modifier, oid));
  if (!name.ok() || PQntuples(name->get()) == 0) {
    return "";
  }
  MutexLock lock(mutex_);
  return known_[type] = PostgresText(name->get(), 0, 0);
}

}  // namespace sluice::catalog
