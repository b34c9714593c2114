#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/row_ranges_internal.h"
#include "catalog/sql/select_shape.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

// Cutting a SELECT into rowid ranges.
namespace sluice::catalog {

struct RowidCut {
  SingleTableSelect shape;
  std::string shard_select;  // with {begin} and {end}
};

// nullopt if SQLite cannot answer the SELECT for a range of rowids without reading others, or if
// reading it twice could give different rows.
Result<std::optional<RowidCut>> FindRowidCut(SqliteConnection& connection, std::string_view select,
                                             size_t columns);

// The distribution of the SELECT's rows, from a few dozen short reads of the table; nullopt if it
// has no rows.
Result<std::optional<RowDensity>> ProbeRowids(SqliteConnection& connection, const RowidCut& cut);

Result<std::vector<ShardRange>> CutRowids(SqliteConnection& connection, const RowidCut& cut,
                                          int64_t rows_per_shard);

}  // namespace sluice::catalog
