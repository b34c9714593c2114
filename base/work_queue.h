#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice {

// Does what may wait for somebody else (another process, a disk, a person), one thing after the
// other, on a thread of its own: whoever asks for it goes on at once. Thread-safe.
class WorkQueue {
 public:
  using Work = std::function<Status()>;

  // `name` is what the work is for, in the errors: "calls of the fleet". `on_error` hears of work
  // that failed, on the queue's thread.
  WorkQueue(std::string name, size_t most_waiting, std::function<void(const Status&)> on_error);
  ~WorkQueue();  // as Stop
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // ResourceExhausted: as much waits as may. Cancelled: the queue has been stopped.
  Status Put(Work work) EXCLUDES(mutex_);
  // Returns when what is being done has been done. What waits is dropped. Not from within `Work`.
  void Stop() EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);

  const std::string name_;
  const size_t most_waiting_;
  const std::function<void(const Status&)> on_error_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Work> waiting_ GUARDED_BY(mutex_);
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: uses the others
};

}  // namespace sluice
