#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::parser {

// The statements of `sql` according to libpg_query's scanner, as byte ranges without their ';';
// nullopt when the scanner cannot read the text. `sql` must not contain NUL bytes. Thread-safe.
std::optional<std::vector<Span>> SplitByPostgres(std::string_view sql);

}  // namespace sluice::parser
