#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::catalog {

// Sends pieces of text to the server on a thread of its own, in order, so that reading and scoring
// the next rows need not wait for it. After an error nothing more is sent. Thread-safe.
class CopySender {
 public:
  // Pieces that wait hold at most about this many bytes.
  static constexpr size_t kMostBytes = size_t{4} << 20;

  using Send = std::function<Status(const std::string& text)>;
  // `send` is called by the thread.
  explicit CopySender(Send send);
  // Drops what has not been sent yet, and waits for what is being sent.
  ~CopySender();

  // Waits while too much is waiting. An error of an earlier piece is returned by each later call.
  Status Put(std::string text) EXCLUDES(mutex_);
  // Returns when everything was sent.
  Status Finish() EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& end) EXCLUDES(mutex_);

  const Send send_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::string> waiting_ GUARDED_BY(mutex_);
  size_t waiting_bytes_ GUARDED_BY(mutex_) = 0;
  bool sending_ GUARDED_BY(mutex_) = false;
  Status failure_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: uses the members above
};

}  // namespace sluice::catalog
