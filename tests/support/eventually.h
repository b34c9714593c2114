#pragma once

#include <chrono>
#include <thread>

namespace sluice {

// Whether `condition` becomes true within a minute; it is asked every two milliseconds. For what
// another thread or process does: a wait in vain fails at its place, instead of ending with the
// whole suite's time limit.
template <class Condition>
[[nodiscard]] bool Eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace sluice
