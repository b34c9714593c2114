#include "base/duration.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace sluice {
namespace {

struct Unit {
  std::string_view name;
  int64_t millis;
};
// The largest first.
constexpr Unit kUnits[] = {
    {"d", kMillisOfDay}, {"h", 3'600'000}, {"min", 60'000}, {"s", kMillisOfSecond}, {"ms", 1}};

}  // namespace

std::optional<int64_t> RoundedMillis(double millis) {
  constexpr double kMax = 1e15;  // exactly representable, and above every setting's limit
  millis = std::round(millis);
  return millis >= 0 && millis <= kMax ? std::optional(static_cast<int64_t>(millis)) : std::nullopt;
}

std::optional<int64_t> ReadMillis(std::string_view text, int64_t of_bare_number) {
  double number = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  std::string_view rest(parsed.ptr, static_cast<size_t>(text.data() + text.size() - parsed.ptr));
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [rest](const Unit& each) { return each.name == rest; });
  if (parsed.ec != std::errc() || (!rest.empty() && unit == std::end(kUnits))) {
    return std::nullopt;
  }
  return RoundedMillis(number * static_cast<double>(rest.empty() ? of_bare_number : unit->millis));
}

std::string MillisText(int64_t millis) {
  const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [millis](const Unit& each) { return millis % each.millis == 0; });
  return fmt::format("{}{}", millis / unit->millis, unit->name);
}

}  // namespace sluice
