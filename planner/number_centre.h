#pragma once

#include <optional>
#include <vector>

namespace sluice::planner {

// How boosted trees, which compare 32-bit numbers, read a column: (x - offset) * scale.
struct NumberCentre {
  double offset = 0;  // a whole number if all are
  double scale = 1;   // a power of two, so that it rounds nothing
};

// Decides from a sample. nullopt: as they are, the numbers are told apart as well, or nearly so.
// `numbers`: finite, ascending; long doubles hold 64-bit integers exactly. `whole`: they are
// integers; of others, neighbours as close as the rounding of a calculation count as one.
std::optional<NumberCentre> FindCentre(const std::vector<long double>& numbers, bool whole);

}  // namespace sluice::planner
