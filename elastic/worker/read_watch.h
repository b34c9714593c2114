#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/mutex.h"

namespace sluice::elastic {

// Whether a thread waits for a database that does not answer. That thread says when each read
// begins and ends; another one, which looks at regular beats, counts for how many of them the same
// read has been under way. Beats rather than time, so that a process that was stopped blames
// nobody.
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

  // What the reader waits for beside an answer (a lock, a free connection), as a line for a person;
  // "": nothing. Any thread.
  void WaitFor(std::string what) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    waits_for_ = std::move(what);
  }
  std::string waits_for() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return waits_for_;
  }

  // The next beat, in the one thread that looks: the beats that the open read has seen before this
  // one.
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
};

}  // namespace sluice::elastic
