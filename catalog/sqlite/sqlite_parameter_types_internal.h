#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

namespace sluice::catalog {

// The types of a statement's `count` parameters, inferred from the columns with which they are
// compared or in which they are stored, for PostgreSQL's clients, which ask before they send any;
// 0: unknown.
Result<std::vector<uint32_t>> SqliteParameterTypes(SqliteConnection& connection,
                                                   std::string_view sql, size_t count);

}  // namespace sluice::catalog
