#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "catalog/job_store.h"

namespace sluice::executor {

// The row of a running job in the catalog. Made when the work starts; Finish writes how it ended,
// and destruction without Finish writes Failed, so that no job stays "running" behind a dead
// statement. While it lives, CANCEL JOB from any other session stops `stop_token()`. Thread-safe.
class JobRecord {
 public:
  // `outer` is the statement's own cancel (Ctrl-C, a client that went away).
  static Result<std::unique_ptr<JobRecord>> Start(catalog::JobStore& jobs, catalog::Job job,
                                                  std::stop_token outer);
  // Continues a job that another process made (the master of a gateway's job).
  static std::unique_ptr<JobRecord> Adopt(catalog::JobStore& jobs, catalog::Job job,
                                          std::stop_token outer);
  ~JobRecord();
  JobRecord(const JobRecord&) = delete;
  JobRecord& operator=(const JobRecord&) = delete;

  int64_t id() const { return job_.id; }
  std::stop_token stop_token() const { return stop_.get_token(); }
  catalog::Job& job() { return job_; }  // row counts for Finish; not while another thread finishes

  // How far the job is, for who looks at it; written to the catalog at most once a second, and
  // when the job fails or is cancelled.
  void Rows(int64_t read, int64_t trained);
  void Event(const std::string& kind, const std::string& detail);
  void Workers(const catalog::JobWorkers& workers);
  void Metric(int64_t step, const std::string& name, double value);
  // Writes the final state: Succeeded, Cancelled (57014) or Failed with the error's text. Returns
  // `outcome`, or the catalog's own error where the job succeeded but could not be recorded.
  Status Finish(const Status& outcome);
  // Another process writes the final state; this one only stops watching.
  void Leave();

 private:
  JobRecord(catalog::JobStore& jobs, catalog::Job job, std::stop_token outer);
  void WatchForCancel(std::stop_token self);
  void WriteRows();

  catalog::JobStore& jobs_;
  catalog::Job job_;
  bool finished_ = false;
  std::atomic<int64_t> rows_read_ = 0;
  std::atomic<int64_t> rows_trained_ = 0;
  int64_t rows_written_ = 0;  // their sum, when they were written last; the watcher's alone
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> outer_callback_;
  std::jthread watcher_;  // last: stops before the members it uses go
};

}  // namespace sluice::executor
