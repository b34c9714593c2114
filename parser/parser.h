#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::parser {

// Longest script that is parsed: a larger one is an error, not a slow answer.
inline constexpr size_t kMaxScriptBytes = 64U << 20U;
// Deepest nesting of expressions, lists and EXPLAIN.
inline constexpr int kMaxDepth = 100;

// Splits a script at its semicolons (libpg_query's scanner knows strings, comments and dollar
// quotes) and reads each statement. Plain statements are not checked; the database does that.
// All statements of the script are read before the first runs; the first syntax error is returned
// with its span, what was expected there, and the nearest keyword. Empty statements are dropped.
// Thread-safe.
Result<std::vector<Statement>> Parse(std::string_view script);

// One name alone, spelled as in a clause: t.y, "Out Table".y. Thread-safe.
Result<Name> ParseName(std::string_view text);

}  // namespace sluice::parser
