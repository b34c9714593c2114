#pragma once

#include <condition_variable>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace sluice::server {

// Whether a gateway can serve: asks its database now and then, on a thread of its own, since one
// that does not answer would hold up whoever asks. Thread-safe.
class Readiness {
 public:
  // `look` may take long. Destroying this waits for it.
  explicit Readiness(std::function<Status()> look);
  // An error: the last look failed, or none has succeeded for kPatienceSeconds.
  Status last() const EXCLUDES(mutex_);

  static constexpr double kPatienceSeconds = 15;

 private:
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);

  const std::function<Status()> look_;
  const SteadyClock clock_;
  mutable Mutex mutex_;
  std::condition_variable_any wake_;
  Status last_ GUARDED_BY(mutex_);
  std::optional<TimePoint> succeeded_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: uses the members above
};

}  // namespace sluice::server
