#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace sluice::elastic {

// Detects a thread that waits for a database that does not answer. That thread marks the beginning
// and end of each read; another one, which looks at regular beats, counts for how many of them the
// same read has been open. Beats rather than time, so that a process that was stopped draws no
// false conclusion.
class ReadWatch {
 public:
  // One read, from its construction to its destruction. `watch` may be null.
  class Read {
   public:
    explicit Read(ReadWatch* watch) : watch_(watch) { Turn(); }
    ~Read() { Turn(); }
    Read(const Read&) = delete;
    Read& operator=(const Read&) = delete;

   private:
    void Turn() {
      if (watch_ != nullptr) {
        watch_->turns_.fetch_add(1, std::memory_order_relaxed);
      }
    }
    ReadWatch* const watch_;
  };

  // What the reader waits for other than an answer (a lock, a free connection), as a line for a
  // person; "": nothing. Any thread.
  void WaitFor(std::string what) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    waits_for_ = std::move(what);
  }
  std::string waits_for() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return waits_for_;
  }

  // Why rows are read again that were to be kept for later epochs, for a person. Any thread.
  void ReadRowsAgain(std::string why) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    rows_read_again_ = std::move(why);
  }
  std::string TakeRowsReadAgain() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(rows_read_again_, {});
  }

  // The next beat, on the thread that looks: the number of beats that the open read has already
  // seen.
  int Beat() {
    const uint64_t turns = turns_.load(std::memory_order_relaxed);
    const bool open = turns % 2 == 1;
    beats_ = open && turns == seen_ ? beats_ + 1 : 0;
    seen_ = turns;
    return beats_;
  }

 private:
  std::atomic<uint64_t> turns_{0};  // odd: a read is open
  uint64_t seen_ = 0;
  int beats_ = 0;
  mutable Mutex mutex_;
  std::string waits_for_ GUARDED_BY(mutex_);
  std::string rows_read_again_ GUARDED_BY(mutex_);
};

}  // namespace sluice::elastic
