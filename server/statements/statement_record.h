#pragma once

#include <string>
#include <string_view>

#include "catalog/sql/sql_text.h"

namespace sluice::server {

// A statement as the log has it: on one line, without comments, with '...' for its texts, which may
// be secret or personal, and cut off where it is long. Thread-safe.
std::string RecordedText(std::string_view sql, catalog::Dialect dialect);

}  // namespace sluice::server
