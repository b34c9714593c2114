#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

// What the server says about a statement, from the fields of its messages. Thread-safe.
namespace sluice::catalog {

// A message of the server other than an error, as a line for a person: "NOTICE: text (detail;
// hint)".
std::string PostgresNotice(std::string_view severity, std::string_view message,
                           std::string_view detail, std::string_view hint);

// The error that the fields of a result or of a wire message describe. `position` counts
// characters of `sql` from 1; 0 when there is none.
Status PostgresError(std::string_view sqlstate, std::string message, std::string detail,
                     std::string hint, int64_t position, std::string_view sql, size_t user_text);

}  // namespace sluice::catalog
