#include "executor/jobs/job_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/sql/sqlstate.h"
#include "elastic/job/training_job.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/job_profile.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/jobs/progress_codec_internal.h"

namespace sluice::executor {
namespace {

// CANCEL JOB takes under a second, and at most half of it is this interval. Polling needs no
// connection; LISTEN would hold one for each job as long as it runs.
constexpr auto kCancelPollInterval = std::chrono::milliseconds(400);
// A job's row is at most this old.
constexpr double kRowsSeconds = 1;
// A cancelled statement is answered within a second; this is the part for its job's last writes.
constexpr std::chrono::milliseconds kLastWritesGrace{400};

}  // namespace

std::string NoticeName(int64_t micros) {
  return fmt::format("{}{:020}", kNoticeRecords, micros);
}

Result<std::unique_ptr<JobRecord>> JobRecord::Start(catalog::Catalog& catalog, catalog::Job job,
                                                    std::stop_token outer, HandOver hand_over,
                                                    Reason reason) {
  job.started_micros = WallMicros();
  job.state = catalog::JobState::kRunning;
  job.runner = ThisProcess();
  ASSIGN_OR_RETURN(job.id, catalog.JobsFor(outer)->Create(job));
  return std::unique_ptr<JobRecord>(new JobRecord(catalog, std::move(job), std::move(outer),
                                                  std::move(hand_over), std::move(reason)));
}

std::unique_ptr<JobRecord> JobRecord::Adopt(catalog::Catalog& catalog, catalog::Job job,
                                            std::stop_token outer, HandOver hand_over) {
  return std::unique_ptr<JobRecord>(
      new JobRecord(catalog, std::move(job), std::move(outer), std::move(hand_over), {}));
}

JobRecord::JobRecord(catalog::Catalog& catalog, catalog::Job job, std::stop_token outer,
                     HandOver hand_over, Reason reason)
    : jobs_(catalog.JobsFor(give_up_.get_token())),
      job_(std::move(job)),
      hand_over_(std::move(hand_over)),
      reason_(std::move(reason)),
      outer_callback_(std::move(outer), std::function<void()>([this] { stop_.request_stop(); })),
      watcher_([this](const std::stop_token& self) { Watch(self); }) {}

JobRecord::~JobRecord() {
  if (!finished_) {
    // The reason for the destruction may prevent writing, too.
    [[maybe_unused]] const Status finished = Guarded("finishing a job", [this] {
      const Status status = Finish(Internal("the statement ended without finishing its job"));
      log::Error("job={} ended unfinished: {}", job_.id, status.ToString());
    });
  }
}

void JobRecord::Watch(const std::stop_token& self) {
  const SteadyClock clock;
  TimePoint seen = clock.Now();
  TimePoint counted = seen;
  TimePoint looked = seen;
  Status written;
  while (!self.stop_requested()) {
    {
      MutexLock lock(mutex_);
      const bool waits = !written.ok();
      wake_.wait_for(lock.native(), self, kCancelPollInterval,
                     [this, waits]() REQUIRES(mutex_) { return !waits && !news_.empty(); });
    }
    if (self.stop_requested()) {
      return;
    }
    if (clock.Now() - looked >= kCancelPollInterval) {
      looked = clock.Now();
      LookForCancel();
    }
    TakePoint(false);
    written = Guarded("writing down what happens in a job", [this] { return Write(); });
    if (SecondsBetween(counted, clock.Now()) >= kRowsSeconds) {
      counted = clock.Now();
      WriteRows();
      WriteProgress();
      WriteNotices();
    }
    if (SecondsBetween(seen, clock.Now()) >= kSeenSeconds) {
      seen = clock.Now();
      RecordLiveness();
    }
  }
}

void JobRecord::RecordLiveness() {
  catalog::JobRunner runner = job_.runner;
  runner.seen_micros = WallMicros();
  const Result<bool> ours =
      Guarded("saying that a job lives", [&] { return jobs_->Seen(job_.id, runner); });
  if (!ours.ok()) {
    log::Warn("job={} cannot say that it lives: {}", job_.id, ours.status().ToString());
  } else if (!*ours) {  // it was silent for so long that it was given up
    log::Warn("job={} was taken over by another process", job_.id);
    taken_over_ = true;
    stop_.request_stop();
  }
}

void JobRecord::LookForCancel() {
  if (stop_.stop_requested()) {
    return;
  }
  const Result<bool> requested =
      Guarded("looking for CANCEL JOB", [this] { return jobs_->CancelRequested(job_.id); });
  if (!requested.ok()) {
    log::Warn("job={} cannot look for CANCEL JOB: {}", job_.id, requested.status().ToString());
  } else if (*requested) {
    cancel_requested_ = true;
    stop_.request_stop();
  }
}

// What cannot be written now is written later; what is refused is lost: it is for display, and the
// job itself continues.
Status JobRecord::Write() {
  const MutexLock writing(writing_);
  UnwrittenNews::Events events;
  UnwrittenNews::Metrics metrics;
  {
    const MutexLock lock(mutex_);
    std::tie(events, metrics) = news_.Take();
  }
  Status told = jobs_->AddEvents(job_.id, events);
  if (IsForLater(told)) {
    const MutexLock lock(mutex_);
    news_.PutBack(events, metrics);
    return told;
  }
  Status measured = jobs_->AddMetrics(job_.id, metrics);
  if (!measured.ok() && IsForLater(measured)) {
    const MutexLock lock(mutex_);
    news_.PutBack({}, metrics);
    return measured;
  }
  for (const Status& status : {told, measured}) {
    if (!status.ok()) {
      log::Warn("job={} not recorded: {}", job_.id, status.ToString());
    }
  }
  ThinWhereFull(metrics);
  return OkStatus();
}

bool JobRecord::IsForLater(const Status& written) const {
  return catalog::MayBeWrittenLater(written) || give_up_.stop_requested();
}

void JobRecord::ThinWhereFull(const std::vector<catalog::JobMetric>& stored) {
  for (bool full = points_.Stored(stored); full; full = points_.Thinned()) {
    const Status thinned = jobs_->ThinMetrics(job_.id, MetricPoints::kMax);
    if (!thinned.ok()) {  // the next point tries again
      log::Warn("job={} has too many points: {}", job_.id, thinned.ToString());
      return;
    }
  }
}

void JobRecord::Flush() {
  static_cast<void>(Write());  // errors are logged by Write
}

void JobRecord::Rows(int64_t read, int64_t trained) {
  rows_read_ = read;
  rows_trained_ = trained;
}

void JobRecord::Progress(const elastic::Progress& now) {
  Rows(now.rows_read, now.rows_done);
  const int64_t micros = WallMicros();
  const MutexLock lock(mutex_);
  if (keeps_progress_) {
    progress_ = ToProto(now).SerializeAsString();
  }
  newest_ = PointOf(now, micros);
}

void JobRecord::TakePoint(bool last) {
  const MutexLock writing(writing_);
  const MutexLock lock(mutex_);
  if (newest_.empty() || (!points_.TakeIfDue(SteadyClock().Now()) && !last)) {
    return;
  }
  news_.AddPoint(newest_);
  newest_.clear();
}

void JobRecord::WriteRows() {
  const int64_t read = rows_read_;
  const int64_t trained = rows_trained_;
  if (read + trained == rows_written_) {
    return;
  }
  rows_written_ = read + trained;
  const Status written = jobs_->WriteRows(job_.id, read, trained);
  if (!written.ok()) {  // for display only; the job continues
    log::Warn("job={} rows not recorded: {}", job_.id, written.ToString());
  }
}

void JobRecord::WriteProgress() {
  std::string progress;
  {
    const MutexLock lock(mutex_);
    progress.swap(progress_);
  }
  const Status kept =
      progress.empty() ? OkStatus() : jobs_->KeepRecord(job_.id, kProgressRecord, progress);
  if (!kept.ok()) {
    log::Warn("job={} progress not recorded: {}", job_.id, kept.ToString());
  }
}

void JobRecord::Notify(const std::string& text) {
  if (on_notice_) {
    on_notice_(text);
  }
  const MutexLock lock(mutex_);
  if (keeps_progress_) {
    news_.AddNotice(text, WallMicros());
  }
}

void JobRecord::WriteNotices() {
  UnwrittenNews::Notices notices;
  {
    const MutexLock lock(mutex_);
    notices = news_.TakeNotices();
  }
  for (auto notice = notices.begin(); notice != notices.end(); notice = notices.erase(notice)) {
    const Status kept = jobs_->KeepRecord(job_.id, NoticeName(notice->first), notice->second);
    if (IsForLater(kept)) {
      break;
    }
    if (!kept.ok()) {
      log::Warn("job={} notice not recorded: {}", job_.id, kept.ToString());
    }
  }
  const MutexLock lock(mutex_);
  news_.PutBack(std::move(notices));
}

std::string JobRecord::WithLastNotices(std::string answer) {
  const MutexLock lock(mutex_);
  return news_.last_notices().empty() ? std::move(answer)
                                      : WithNotices(std::move(answer), news_.last_notices());
}

void JobRecord::Event(const std::string& kind, const std::string& detail) {
  const MutexLock lock(mutex_);
  news_.Add(catalog::JobEvent{WallMicros(), kind, detail});
  wake_.notify_all();
}

void JobRecord::Announce(const std::string& kind, const std::string& detail) {
  Event(kind, detail);
  Notify(detail);
}

void JobRecord::Metric(int64_t step, const std::string& name, double value) {
  const MutexLock lock(mutex_);
  news_.Add(catalog::JobMetric{WallMicros(), step, name, value});
  wake_.notify_all();
}

void JobRecord::Workers(const catalog::JobWorkers& workers) {
  const int64_t values[] = {workers.now, workers.wanted, workers.min, workers.max};
  const int64_t now = WallMicros();
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < std::size(values); ++i) {
    news_.Add(
        catalog::JobMetric{now, 0, catalog::kJobWorkersMetrics[i], static_cast<double>(values[i])});
  }
  wake_.notify_all();
}

void JobRecord::RecordProfile() {
  if (std::exchange(profile_recorded_, true)) {
    return;
  }
  const std::vector<catalog::JobMetric> metrics = MetricsOf(profile_.Get(), WallMicros());
  const MutexLock lock(mutex_);
  news_.AddAtTheEnd(metrics);
}

void JobRecord::Leave() {
  finished_ = true;
  watcher_.request_stop();
  if (!aborter_.joinable()) {
    aborter_ = std::jthread([this](const std::stop_token& self) { AbortWritesOnceStopped(self); });
  }
}

void JobRecord::AbortWritesOnceStopped(const std::stop_token& self) {
  std::mutex mutex;
  std::condition_variable_any wake;
  const std::stop_callback stopped(stop_.get_token(), [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    wake.notify_all();
  });
  std::unique_lock<std::mutex> lock(mutex);
  wake.wait(lock, self, [this] { return stop_.stop_requested(); });
  wake.wait_for(lock, self, kLastWritesGrace, [] { return false; });
  if (!self.stop_requested()) {
    give_up_.request_stop();
  }
}

}  // namespace sluice::executor
