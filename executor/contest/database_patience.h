#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::executor {

// Whether an error says something about the database (a lost connection, a server that restarts or
// is full, a transaction that gave way to another, a lost snapshot) rather than about what was
// trained. 57014 counts as the database's: ask first whether the training itself was stopped.
bool IsTheDatabases(const Status& status);

// Trains again what the database's own errors ended, so that they decide nothing between
// candidates. Thread-safe.
class DatabasePatience {
 public:
  // `seconds`: how long after its first such error the same work is still repeated. `tell` receives
  // a line for the client when it begins to wait, from any thread.
  DatabasePatience(double seconds, std::stop_token stop,
                   std::function<void(const std::string&)> tell);

  // Does the work until it ends without an error of the database, or is stopped. When the patience
  // is over, or the snapshot is lost, that error ends everything: see ended().
  void Do(const std::function<Status()>& work) EXCLUDES(mutex_);
  // Nothing is to be begun any more.
  bool ended() const EXCLUDES(mutex_) { return !error().ok(); }
  // The first error that ended it; OK: none.
  Status error() const EXCLUDES(mutex_);

 private:
  const double seconds_;
  const std::stop_token stop_;
  const std::function<void(const std::string&)> tell_;
  mutable Mutex mutex_;
  Status error_ GUARDED_BY(mutex_);
};

}  // namespace sluice::executor
