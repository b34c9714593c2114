#pragma once

#include <string>
#include <string_view>

#include "catalog/data_source.h"
#include "catalog/postgres/postgres_connection_internal.h"

namespace sluice::catalog {

// Completes a sample's statistics with those of ANALYZE for the columns of `table` that the SELECT
// returns unchanged. A sample of blocks misses values if the table is sorted by a column; ANALYZE
// samples rows from everywhere. Only values that the sample clearly missed are added: otherwise the
// numbers must not depend on when the table was last analysed.
Status AddAnalyzedStatistics(PostgresConnection& connection, std::string_view select, int64_t table,
                             int64_t common_values, SelectStatistics* statistics);

}  // namespace sluice::catalog
