#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::planner {

// The distinct values of one column of a SELECT, NULL left out, in FormatValue's form: asked of the
// database, because a class that statistics have missed would fail the training at its first row.
// At most `limit` + 1 values come back, which is how a caller sees that there are more.
Result<std::vector<std::string>> QueryClasses(std::string_view select, std::string_view column,
                                              size_t limit, catalog::DataSource& source);

}  // namespace sluice::planner
