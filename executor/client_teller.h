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

// Tells a statement's client of progress, and what it should know, on a thread of its own: a client
// that does not read holds up nobody. Of what it has not read yet the oldest is dropped. Until the
// end of Finish the sink is this object's. Thread-safe.
class ClientTeller {
 public:
  explicit ClientTeller(ResultSink& sink);
  ~ClientTeller();  // as Finish
  ClientTeller(const ClientTeller&) = delete;
  ClientTeller& operator=(const ClientTeller&) = delete;

  void Tell(const elastic::Progress& progress) EXCLUDES(mutex_);
  void Notify(const std::string& notice) EXCLUDES(mutex_);
  // Returns when everything has been told; nothing is told any more.
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
