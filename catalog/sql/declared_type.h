#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::catalog {

// A type as PostgreSQL's clients know it (pg_type.oid, pg_attribute.atttypmod).
struct DeclaredType {
  uint32_t oid = 0;  // 0: not determined by the declaration
  int32_t modifier = -1;
};

// The type that PostgreSQL's clients see for a column that SQLite declares as `declared`: every
// integer is int8, as any 64 bits may be stored there. Pure; thread-safe.
DeclaredType PostgresTypeOf(std::string_view declared);

// pg_type.typlen of such a type.
int16_t PostgresTypeBytes(uint32_t oid);

}  // namespace sluice::catalog
