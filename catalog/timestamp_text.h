#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::catalog {

// What PostgreSQL's 'infinity' and '-infinity' become.
inline constexpr int64_t kTimestampInfinity = INT64_MAX;
inline constexpr int64_t kTimestampMinusInfinity = INT64_MIN;

// Microseconds since 1970-01-01 UTC of "YYYY-MM-DD[( |T)HH:MM[:SS[.ffffff]][Z|(+|-)HH[[:]MM]]]
// [ BC]", 'infinity' and '-infinity'; nullopt for any other text. No zone means UTC.
std::optional<int64_t> ParseTimestamp(std::string_view text);

// The text that both databases take back for such a value.
std::string TimestampLiteral(int64_t micros);

}  // namespace sluice::catalog
