#pragma once

#include <condition_variable>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "catalog/job_store.h"

namespace sluice::executor {

// The end of a job, to be recorded.
struct EndedJob {
  std::string url;  // URL of its catalog; its password is stored separately
  std::string secret;
  catalog::Job job;
  std::vector<catalog::JobEvent> events;  // that could not be written either
};

// Records the ends of jobs whose database could not be reached, or was locked, when they ended: as
// soon as the database answers. A job that is still unrecorded when this object is destroyed stays
// RUNNING until MarkLostJobs finds its process gone. Thread-safe.
class JobCloser {
 public:
  void Close(EndedJob ended) EXCLUDES(mutex_);
  // Waits until everything is recorded, or `stop` is requested.
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
