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

// What a job's thread in the gateway still has to do: what has happened in its cluster, and what
// its master asks for. One thread does it, any thread may add to it.
class JobInbox {
 public:
  using Work = std::function<Status()>;

  void Put(Work work);
  // The same for what only people wait for: dropped where too much waits already.
  void Offer(Work work);
  // Waits for what comes of it. Unavailable: the job is over.
  Status Ask(Work work);
  // Does the next one. False: `stop` was requested, or `until` has come, before there was any.
  bool DoNext(const std::stop_token& stop, std::chrono::steady_clock::time_point until);
  // The job is over: nothing more is done, and nobody waits for it.
  void Close();

 private:
  struct Entry {
    Work work;
    std::shared_ptr<std::promise<Status>> answer;  // null: nobody waits
  };
  static void Refuse(const Entry& entry);
  void Add(Entry entry) EXCLUDES(mutex_);

  Mutex mutex_;
  std::condition_variable_any changed_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::deque<Entry> entries_ GUARDED_BY(mutex_);
};

}  // namespace sluice::executor
