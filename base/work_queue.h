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

// Does work that may block (on another process, a disk, a person) in order, on a thread of its own,
// so that the caller continues at once. Thread-safe.
class WorkQueue {
 public:
  using Work = std::function<Status()>;

  // `name` describes the work in errors: "calls of the fleet". `on_error` is called with the error
  // of failed work, on the queue's thread.
  WorkQueue(std::string name, size_t most_waiting, std::function<void(const Status&)> on_error);
  ~WorkQueue();  // like Stop
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // ResourceExhausted: the queue is full. Cancelled: the queue has been stopped.
  Status Put(Work work) EXCLUDES(mutex_);
  // Returns when the current work is done; drops waiting work. Must not be called from within
  // `Work`.
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
  std::jthread thread_;  // last: uses the members above
};

}  // namespace sluice
