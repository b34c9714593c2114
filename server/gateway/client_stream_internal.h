#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <google/protobuf/message.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace sluice::server {

// Writes a script's output to its client on a thread of its own, so that a client that does not
// read never holds up a job. Rows wait in a bounded queue; progress and notices never wait. A
// client that accepts no message for some time is cut off. Thread-safe.
class ClientStream {
 public:
  using Message = std::unique_ptr<google::protobuf::Message>;
  struct Call {
    // Blocks until the client has room; false: the client is gone. Called by the stream's thread
    // only.
    std::function<bool(const google::protobuf::Message& message)> write;
    // Ends the call: a blocked `write` returns.
    std::function<void()> cut_off;
    std::function<bool()> is_gone;
  };
  // `seconds`: a client that takes longer than this for one message is cut off.
  ClientStream(Call call, const Clock& clock, double seconds);
  ~ClientStream();  // waits for the write in progress and drops the rest
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;

  // Waits while too much is unwritten. Fails when the client is gone.
  Status Send(Message message);
  // A notice for a person; dropped when the client lags far behind. Never waits.
  void Notify(Message notice);
  // Replaces progress that has not been written yet. Never waits.
  void Show(Message progress);
  // Waits until everything is written, or the client is gone.
  void Drain();

  // Call repeatedly while the script runs, from any thread: it cuts the client off when it is time.
  bool IsGone();

 private:
  enum class Kind { kRows, kNotice, kProgress };
  struct Entry {
    Message message;
    Kind kind = Kind::kRows;
    size_t bytes = 0;
  };

  void Push(Message message, Kind kind) REQUIRES(mutex_);
  void WriteAll(const std::stop_token& end);
  void CutOffClient();

  const Call call_;
  const Clock& clock_;
  const double seconds_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Entry> queue_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;    // of queue_
  size_t notices_ GUARDED_BY(mutex_) = 0;  // in queue_
  std::optional<TimePoint> writing_since_ GUARDED_BY(mutex_);
  bool gone_ GUARDED_BY(mutex_) = false;
  bool too_slow_ GUARDED_BY(mutex_) = false;
  std::jthread writer_;  // last: uses the rest
};

}  // namespace sluice::server
