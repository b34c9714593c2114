#include "executor/contest/database_patience.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/sleep.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::executor {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{1'600};

}  // namespace

bool IsTheDatabases(const Status& status) {
  const std::string_view state = status.sqlstate();
  return catalog::IsUnavailableForNow(status) || state.starts_with("40") ||
         state.starts_with("58") || state == "57014" || catalog::IsSnapshotGone(status);
}

DatabasePatience::DatabasePatience(double seconds, std::stop_token stop,
                                   std::function<void(const std::string&)> tell)
    : seconds_(seconds), stop_(std::move(stop)), tell_(std::move(tell)) {}

void DatabasePatience::Do(const std::function<Status()>& work) {
  Status status = work();
  const SteadyClock clock;
  const TimePoint failed = clock.Now();
  for (std::chrono::milliseconds pause = kFirstPause;
       IsTheDatabases(status) && !stop_.stop_requested() && !ended();
       pause = std::min(2 * pause, kLongestPause)) {
    const bool lost = catalog::IsSnapshotGone(status);
    if (lost || SecondsBetween(failed, clock.Now()) >= seconds_) {
      const MutexLock lock(mutex_);
      error_ = lost ? std::move(status)
                    : std::move(status).Because(fmt::format(
                          "the database has interrupted a training for {:.0f} seconds", seconds_));
      return;
    }
    if (pause == kFirstPause) {
      tell_(
          fmt::format("a training is repeated that the database interrupted, for {:.0f} seconds "
                      "at most: {}",
                      seconds_, status.message()));
    }
    if (!SleepFor(pause, stop_)) {
      return;
    }
    status = work();
  }
}

Status DatabasePatience::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

}  // namespace sluice::executor
