#pragma once

#include <span>

namespace sluice::models {

// Whole numbers that tell a time together, the coarsest first (year, month, day, hour), as one
// number that is larger for a later time. Exact for five of them, each but the first from 0 to 511;
// what is outside counts as the nearest.
double PlaceInCalendar(std::span<const double> parts);

}  // namespace sluice::models
