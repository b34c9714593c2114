#pragma once

#include <condition_variable>
#include <functional>
#include <thread>

#include "base/mutex.h"
#include "base/profile.h"
#include "base/status.h"
#include "elastic/worker/shard_rows.h"

namespace sluice::elastic {

// Loads the shards of a loader on a thread of its own, one at a time, while another thread trains,
// and prepares what the training needs of each.
// Between Begin and the shard's end nobody else may use the loader. For one thread.
class ReaderThread {
 public:
  // `loader` must outlive it, and so must `profile`, which receives the thread's time; null:
  // nobody.
  ReaderThread(ShardLoader& loader, ProfileSum* profile);
  ~ReaderThread();

  // The loader has started a shard. Once it is complete, `then` runs on the reader's thread, whose
  // clock it gets.
  using Then = std::function<Status(PhaseClock*)>;
  void Begin(Then then = {}) EXCLUDES(mutex_);
  bool reading() const { return reading_; }
  // Waits for a moment until the shard is complete and `then` has run. False: not yet. After true
  // or an error the loader is the caller's again.
  Result<bool> Wait() EXCLUDES(mutex_);
  // Takes the loader back after the piece that is being read.
  void Stop() EXCLUDES(mutex_);

 private:
  enum class State { kIdle, kWanted, kStopping, kOver };

  void Run(const std::stop_token& end) EXCLUDES(mutex_);
  Result<bool> ReadShard(const Then& then) EXCLUDES(mutex_);
  Result<bool> Pump() EXCLUDES(mutex_);
  bool Wanted() EXCLUDES(mutex_);

  ShardLoader& loader_;
  ProfileSum* const profile_;
  bool reading_ = false;  // used by the caller's thread only
  Mutex mutex_;
  std::condition_variable_any changed_;
  State state_ GUARDED_BY(mutex_) = State::kIdle;
  Then then_ GUARDED_BY(mutex_);
  Result<bool> result_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: uses the members above
};

}  // namespace sluice::elastic
