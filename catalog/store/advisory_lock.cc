#include "catalog/store/advisory_lock.h"

#include <chrono>
#include <thread>

namespace sluice::catalog {

Status AwaitAdvisoryLock(const std::function<Result<bool>()>& take) {
  constexpr std::chrono::seconds kPatience(5);
  constexpr std::chrono::milliseconds kBetween(20);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    ASSIGN_OR_RETURN(const bool taken, take());
    if (taken || std::chrono::steady_clock::now() >= deadline) {
      return OkStatus();
    }
    std::this_thread::sleep_for(kBetween);
  }
}

}  // namespace sluice::catalog
