#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

inline constexpr int64_t kMillisOfSecond = 1'000;
inline constexpr int64_t kMillisOfDay = 86'400'000;

// Durations as the texts of settings have them ("5", "0.5 s", "10min"), in PostgreSQL's units: ms,
// s, min, h and d. A number without a unit is of `of_bare_number` milliseconds. nullopt: the text
// is no duration, or a negative one, or longer than 1e15 ms.
std::optional<int64_t> ReadMillis(std::string_view text, int64_t of_bare_number);
// The nearest whole number, within the same limits.
std::optional<int64_t> RoundedMillis(double millis);
// "500ms", "2min": in the largest unit of which it is a whole number. ReadMillis reads it.
std::string MillisText(int64_t millis);

}  // namespace sluice
