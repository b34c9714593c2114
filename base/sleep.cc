#include "base/sleep.h"

#include <condition_variable>
#include <mutex>

namespace sluice {

bool SleepFor(std::chrono::duration<double> duration, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock<std::mutex> lock(mutex);
  stopped.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace sluice
