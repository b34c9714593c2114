#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

namespace sluice::catalog {

// The types of the `count` parameters of a statement, by the columns that they are compared with or
// stored in, as PostgreSQL's clients ask for them before they send any; 0: the text does not say.
Result<std::vector<uint32_t>> SqliteParameterTypes(SqliteConnection& connection,
                                                   std::string_view sql, size_t count);

}  // namespace sluice::catalog
