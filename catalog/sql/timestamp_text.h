#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::catalog {

// Stands for PostgreSQL's 'infinity' and '-infinity', and for times outside the range of 64-bit
// microseconds: after the year 294246, before 290308 BC. As a feature of a model such a time is
// NULL.
inline constexpr int64_t kTimestampInfinity = INT64_MAX;
inline constexpr int64_t kTimestampMinusInfinity = INT64_MIN;
inline bool IsInfinite(int64_t micros) {
  return micros == kTimestampInfinity || micros == kTimestampMinusInfinity;
}
// `days` since 1970-01-01 and `micros` of time as one number; infinite where it would not fit.
int64_t TimestampOf(int64_t days, int64_t micros);

// Microseconds since 1970-01-01 UTC of "YYYY-MM-DD[( |T)HH:MM[:SS[.ffffff]][Z|(+|-)HH[[:]MM]]]
// [ BC]", 'infinity' and '-infinity'; nullopt for any other text. No zone means UTC.
std::optional<int64_t> ParseTimestamp(std::string_view text);

// The text from which both databases read back such a value.
std::string TimestampLiteral(int64_t micros);

}  // namespace sluice::catalog
