#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <stop_token>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::executor {

// The work queue of a job's thread in the gateway: events of its cluster, and requests of its
// master. One thread does the work, any thread may add to it.
class JobWorkQueue {
 public:
  using Work = std::function<Status()>;

  void Put(Work work);
  // The same for work that is only for display: dropped if too much is waiting.
  void Offer(Work work);
  // Waits for the result. Unavailable: the job is over.
  Status Ask(Work work);
  // Does the next piece. False: `stop` was requested, or `until` passed, before there was any.
  bool DoNext(const std::stop_token& stop, std::chrono::steady_clock::time_point until);
  // The job is over: remaining work is dropped, and Ask no longer waits.
  void Close();

 private:
  struct Entry {
    Work work;
    std::shared_ptr<std::promise<Status>> answer;  // null: no caller waits
  };
  static void Refuse(const Entry& entry);
  void Add(Entry entry) EXCLUDES(mutex_);

  Mutex mutex_;
  std::condition_variable_any changed_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::deque<Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace sluice::executor
