#include "models/features/calendar_parts.h"

#include <algorithm>

namespace sluice::models {

double PlaceInCalendar(std::span<const double> parts) {
  constexpr double kOfOnePart = 512;  // more than days in a year
  double place = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    place = i == 0 ? parts[i] : place * kOfOnePart + std::clamp(parts[i], 0.0, kOfOnePart - 1);
  }
  return place;
}

}  // namespace sluice::models
