#pragma once

#include <condition_variable>
#include <deque>
#include <string>
#include <thread>
#include <variant>

#include "base/mutex.h"
#include "elastic/job/training_job.h"

namespace sluice::executor {

class ResultSink;

// Sends progress and notices to a statement's client on a thread of its own, so that a client that
// does not read holds up nothing. If too much is unread, the oldest is dropped. Uses the sink alone
// until Finish returns. Thread-safe.
class ClientReporter {
 public:
  explicit ClientReporter(ResultSink& sink);
  ~ClientReporter();  // calls Finish
  ClientReporter(const ClientReporter&) = delete;
  ClientReporter& operator=(const ClientReporter&) = delete;

  void Report(const elastic::Progress& progress) EXCLUDES(mutex_);
  void Notify(const std::string& notice) EXCLUDES(mutex_);
  // Returns when everything has been sent; nothing is sent after that.
  void Finish() EXCLUDES(mutex_);

 private:
  using Message = std::variant<elastic::Progress, std::string>;
  void Put(Message message) EXCLUDES(mutex_);
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);

  ResultSink& sink_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Message> waiting_ GUARDED_BY(mutex_);
  bool finished_ GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: uses the others
};

}  // namespace sluice::executor
