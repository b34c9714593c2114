#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "base/letter_case.h"

namespace sluice::parser {

// Whether `text` is the keyword `upper_case`, in any case.
inline bool SameWord(std::string_view text, std::string_view upper_case) {
  return SameIgnoringCase(text, upper_case);
}

template <size_t kSize>
bool IsOneOf(std::string_view text, const std::array<std::string_view, kSize>& upper_case) {
  return std::any_of(upper_case.begin(), upper_case.end(),
                     [text](std::string_view word) { return SameWord(text, word); });
}

// The verbs that may follow TO in an extended statement.
inline constexpr std::array<std::string_view, 7> kVerbs = {
    "TRAIN", "PREDICT", "EVALUATE", "EXPLAIN", "RUN", "MAXIMIZE", "MINIMIZE"};

// Not names inside our clauses unless quoted, since each of them could also continue the statement.
inline constexpr std::array<std::string_view, 18> kReserved = {
    "SELECT", "FROM", "WHERE", "WITH", "COLUMN", "LABEL", "USING",      "INTO", "FOR",
    "AS",     "TO",   "GROUP", "BY",   "CMD",    "AND",   "CONSTRAINT", "OR",   "NOT"};

inline bool IsReserved(std::string_view text) {
  return IsOneOf(text, kReserved);
}

}  // namespace sluice::parser
