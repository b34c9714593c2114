#pragma once

#include <chrono>

#include "base/clock.h"

namespace sluice::k8s {

inline TimePoint Seconds(double seconds) {
  return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

}  // namespace sluice::k8s
