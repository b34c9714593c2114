#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::parser {

// The statements of `sql` according to libpg_query's scanner, as byte ranges without their ';';
// nullopt when the scanner cannot read the text. `sql` must not contain NUL bytes. Thread-safe.
std::optional<std::vector<Span>> SplitByPostgres(std::string_view sql);

// The parser's tree takes up to sixty times the memory of the text.
inline constexpr size_t kMaxParsedBytes = 1U << 20U;

// Whether `statement` is one statement of PostgreSQL's grammar, by libpg_query's parser. Its stack
// is bounded; deeper nesting is refused, as PostgreSQL does. Takes 0.01 ms for a hundred bytes.
// False for texts longer than kMaxParsedBytes. Thread-safe.
bool PostgresParses(std::string_view statement);

}  // namespace sluice::parser
