#pragma once

#include <condition_variable>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "catalog/job_store.h"

namespace sluice::executor {

// A job that has ended, as it is to be written down.
struct EndedJob {
  std::string url;  // of its catalog, and the secret beside it
  std::string secret;
  catalog::Job job;
  std::vector<catalog::JobEvent> events;  // that could not be written, either
};

// Writes down how jobs have ended whose database could not be reached, or was locked, when they
// did: as soon as it answers. A job that is left when this goes is RUNNING until MarkLostJobs finds
// that its process is gone. Thread-safe.
class JobCloser {
 public:
  void Close(EndedJob ended) EXCLUDES(mutex_);
  // Until nothing is left to be written down, or `stop` is requested.
  void WaitUntilClosed(const std::stop_token& stop) EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<EndedJob> open_ GUARDED_BY(mutex_);
  size_t unwritten_ GUARDED_BY(mutex_) = 0;
  std::jthread thread_;  // last: stops before the members it uses go; from the first Close on
};

}  // namespace sluice::executor
