#pragma once

#include <string>
#include <string_view>

#include "catalog/sql/sql_text.h"

namespace sluice::server {

// A statement as it is recorded: on one line, without comments, with '...' and ? for its texts and
// numbers, which may be secret or personal, and cut off where it is long. Thread-safe.
std::string RecordedText(std::string_view sql, catalog::Dialect dialect);

// The name of a column as it is recorded: SQLite names one without an alias by its expression.
std::string RecordedColumn(std::string_view name, catalog::Dialect dialect);

}  // namespace sluice::server
