#pragma once

#include <string_view>

#include "base/status.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::executor {

// To an error about a cell of the SELECT (base/bad_rows.h): how many rows have such a cell, which
// is the first, and a statement that shows them. Other statuses stay as they are.
Status WithBadRows(Status status, std::string_view select, catalog::DataSource& source);

}  // namespace sluice::executor
