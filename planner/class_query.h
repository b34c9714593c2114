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

// The distinct values of one column of a SELECT, NULL left out, in FormatValue's form for the
// column's type, which is how a training reads them: asked of the
// database, because a class that statistics have missed would fail the training at its first row.
// `seen` are values that were read from it, in the same form; the database, told to leave
// a few of them out, is done in little more than half the time. More than `limit` values may come
// back, which is how a caller sees that there are more.
Result<std::vector<std::string>> QueryClasses(std::string_view select, const ColumnInfo& column,
                                              const std::set<std::string>& seen, size_t limit,
                                              catalog::DataSource& source);

}  // namespace sluice::planner
