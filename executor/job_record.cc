#include "executor/job_record.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "executor/lost_jobs.h"

namespace sluice::executor {
namespace {

// CANCEL JOB takes under a second: half of it may pass before the job hears of it.
constexpr auto kCancelPollInterval = std::chrono::milliseconds(400);
// A look at a job shows rows that are as old at most.
constexpr double kRowsSeconds = 1;

}  // namespace

Result<std::unique_ptr<JobRecord>> JobRecord::Start(catalog::JobStore& jobs, catalog::Job job,
                                                    std::stop_token outer) {
  job.started_micros = WallMicros();
  job.state = catalog::JobState::kRunning;
  job.runner = ThisProcess();
  ASSIGN_OR_RETURN(job.id, jobs.Create(job));
  return Adopt(jobs, std::move(job), std::move(outer));
}

std::unique_ptr<JobRecord> JobRecord::Adopt(catalog::JobStore& jobs, catalog::Job job,
                                            std::stop_token outer) {
  return std::unique_ptr<JobRecord>(new JobRecord(jobs, std::move(job), std::move(outer)));
}

JobRecord::JobRecord(catalog::JobStore& jobs, catalog::Job job, std::stop_token outer)
    : jobs_(jobs),
      job_(std::move(job)),
      outer_callback_(std::move(outer), std::function<void()>([this] { stop_.request_stop(); })),
      watcher_([this](std::stop_token self) { WatchForCancel(std::move(self)); }) {}

JobRecord::~JobRecord() {
  if (!finished_) {
    // Whatever brought it here may still be in the way.
    [[maybe_unused]] const Status finished = Guarded("finishing a job", [this] {
      const Status status = Finish(Internal("the statement ended without finishing its job"));
      log::Error("job={} ended unfinished: {}", job_.id, status.ToString());
    });
  }
}

void JobRecord::WatchForCancel(std::stop_token self) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock<std::mutex> lock(mutex);
  const SteadyClock clock;
  TimePoint seen = clock.Now();
  TimePoint counted = seen;
  while (!self.stop_requested() && !stop_.stop_requested()) {
    wake.wait_for(lock, self, kCancelPollInterval, [] { return false; });
    if (self.stop_requested()) {
      return;
    }
    const Result<bool> requested =
        Guarded("looking for CANCEL JOB", [this] { return jobs_.CancelRequested(job_.id); });
    if (!requested.ok()) {
      log::Warn("job={} cannot look for CANCEL JOB: {}", job_.id, requested.status().ToString());
    } else if (*requested) {
      stop_.request_stop();
    }
    if (SecondsBetween(counted, clock.Now()) >= kRowsSeconds) {
      counted = clock.Now();
      WriteRows();
    }
    if (SecondsBetween(seen, clock.Now()) >= kSeenSeconds) {
      seen = clock.Now();
      const Status told = jobs_.Seen(job_.id, WallMicros());
      if (!told.ok()) {
        log::Warn("job={} cannot say that it lives: {}", job_.id, told.ToString());
      }
    }
  }
}

void JobRecord::Rows(int64_t read, int64_t trained) {
  rows_read_ = read;
  rows_trained_ = trained;
}

void JobRecord::WriteRows() {
  const int64_t read = rows_read_;
  const int64_t trained = rows_trained_;
  if (read + trained == rows_written_) {
    return;
  }
  rows_written_ = read + trained;
  const Status written = jobs_.WriteRows(job_.id, read, trained);
  if (!written.ok()) {  // for people; the job itself goes on
    log::Warn("job={} rows not recorded: {}", job_.id, written.ToString());
  }
}

void JobRecord::Event(const std::string& kind, const std::string& detail) {
  const Status status = jobs_.AddEvents(job_.id, {{WallMicros(), kind, detail}});
  if (!status.ok()) {  // events are for people; the job itself goes on
    log::Warn("job={} event {} not recorded: {}", job_.id, kind, status.ToString());
  }
}

void JobRecord::Metric(int64_t step, const std::string& name, double value) {
  const Status status = jobs_.AddMetrics(job_.id, {{WallMicros(), step, name, value}});
  if (!status.ok()) {
    log::Warn("job={} metric {} not recorded: {}", job_.id, name, status.ToString());
  }
}

void JobRecord::Workers(const catalog::JobWorkers& workers) {
  const int64_t values[] = {workers.now, workers.wanted, workers.min, workers.max};
  const int64_t now = WallMicros();
  std::vector<catalog::JobMetric> metrics;
  for (size_t i = 0; i < std::size(values); ++i) {
    metrics.push_back({now, 0, catalog::kJobWorkersMetrics[i], static_cast<double>(values[i])});
  }
  const Status status = jobs_.AddMetrics(job_.id, metrics);
  if (!status.ok()) {
    log::Warn("job={} number of workers not recorded: {}", job_.id, status.ToString());
  }
}

void JobRecord::Leave() {
  finished_ = true;
  watcher_.request_stop();
}

Status JobRecord::Finish(const Status& outcome) {
  Leave();
  job_.finished_micros = WallMicros();
  if (outcome.ok()) {
    job_.state = catalog::JobState::kSucceeded;
  } else {
    job_.state = outcome.code() == Code::kCancelled ? catalog::JobState::kCancelled
                                                    : catalog::JobState::kFailed;
    job_.error = outcome.ToString();
    job_.rows_read = std::max<int64_t>(job_.rows_read, rows_read_);
    job_.rows_trained = std::max<int64_t>(job_.rows_trained, rows_trained_);
  }
  const Status recorded = jobs_.Update(job_);
  if (outcome.ok()) {
    return recorded;
  }
  if (!recorded.ok()) {
    log::Error("job={} end not recorded: {}", job_.id, recorded.ToString());
  }
  return outcome;
}

}  // namespace sluice::executor
