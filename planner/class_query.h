#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::planner {

// The distinct values of one column of a SELECT, without NULL, in FormatValue's form for the
// column's type, as a training reads them. Queried because a class missing from the statistics
// would fail the training at its first row. `seen` are values already known, in the same form;
// excluding a few of them nearly halves the database's time. More than `limit` values may be
// returned, which tells the caller that there are more.
Result<std::vector<std::string>> QueryClasses(std::string_view select, const ColumnInfo& column,
                                              const std::set<std::string>& seen, size_t limit,
                                              catalog::DataSource& source);

}  // namespace sluice::planner
