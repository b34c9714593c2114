#pragma once

#include <string>
#include <string_view>

#include "catalog/data_source.h"
#include "catalog/postgres/postgres_connection_internal.h"

namespace sluice::catalog {

// Completes a sample's statistics by what ANALYZE knows of the columns of `table` that the SELECT
// returns as they are. A sample of blocks misses values where the table is sorted by a column;
// ANALYZE looks at rows from everywhere. Only what the sample clearly missed is taken over: where
// the two agree, the numbers must not depend on when the table was analysed last.
Status AddAnalyzedStatistics(PostgresConnection& connection, std::string_view select, int64_t table,
                             int64_t common_values, SelectStatistics* statistics);

}  // namespace sluice::catalog
