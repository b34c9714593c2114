#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace sluice {

// Whether `condition` becomes true within `longest`. It is asked after a millisecond, and less
// often from then on, since asking may cost a query. For what another thread or process does: a
// wait in vain fails at its place, instead of ending with the whole suite's time limit.
template <class Condition>
[[nodiscard]] bool Eventually(const Condition& condition,
                              std::chrono::seconds longest = std::chrono::minutes(2)) {
  constexpr std::chrono::milliseconds kLongestStep(20);
  const auto end = std::chrono::steady_clock::now() + longest;
  std::chrono::milliseconds step(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(step);
    step = std::min(2 * step, kLongestStep);
  }
  return true;
}

}  // namespace sluice
