#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/profile.h"
#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/job_store.h"
#include "executor/jobs/job_closer.h"
#include "executor/jobs/metric_points.h"
#include "executor/jobs/unwritten_news.h"

namespace sluice::catalog {
class Catalog;
}

namespace sluice::elastic {
struct Progress;
}

namespace sluice::executor {

struct Context;

// The record of a job's row that holds its newest progress (ProgressProto).
inline constexpr char kProgressRecord[] = "progress";
// Prefix of the records for notices to its client; followed by the time, which orders them.
inline constexpr char kNoticeRecords[] = "notice/";
std::string NoticeName(int64_t micros);  // the name of such a record

// The row of a running job in the catalog. Created when the work starts; Finish writes how it
// ended, and destruction without Finish writes Failed, so that no job stays "running" after its
// statement has died. While it lives, CANCEL JOB from any other session stops `stop_token()`. A
// thread of its own writes events, in order, so that a locked or unreachable database holds nothing
// up. Thread-safe.
class JobRecord {
 public:
  // Takes over a job whose end could not be recorded.
  using HandOver =
      std::function<void(const catalog::Job& job, const std::vector<catalog::JobEvent>& events)>;
  // Turns the outcome of a stopped job into the one to report and record.
  using Reason = std::function<Status(Status outcome)>;
  // `outer` is the statement's own cancel (Ctrl-C, a client that disconnects). It also ends the
  // wait for a lock that another session holds, and then no job begins.
  static Result<std::unique_ptr<JobRecord>> Start(catalog::Catalog& catalog, catalog::Job job,
                                                  std::stop_token outer, HandOver hand_over = {},
                                                  Reason reason = {});
  // Continues a job that another process created: `job.runner`, if known, becomes its runner.
  static std::unique_ptr<JobRecord> Adopt(catalog::Catalog& catalog, catalog::Job job,
                                          std::stop_token outer, HandOver hand_over = {});
  ~JobRecord();
  JobRecord(const JobRecord&) = delete;
  JobRecord& operator=(const JobRecord&) = delete;

  int64_t id() const { return job_.id; }
  std::stop_token stop_token() const { return stop_.get_token(); }
  catalog::Job& job() { return job_; }  // row counts; not while another thread is in Finish

  // How far the job is, for display; written to the catalog at most once a second, and when the job
  // fails or is cancelled.
  void Rows(int64_t read, int64_t trained);
  // The same for a training, with its loss, speed and workers, which are stored as points of the
  // job's metrics: at most one a second, and the last one when the job ends.
  void Progress(const elastic::Progress& now) EXCLUDES(mutex_);
  // Also store progress and notices with the row, for clients that cannot connect to this process.
  void KeepProgress() { keeps_progress_ = true; }
  void Event(const std::string& kind, const std::string& detail);
  // An event that is also sent to the statement's client.
  void Announce(const std::string& kind, const std::string& detail);
  void Notify(const std::string& text) EXCLUDES(mutex_);
  // Sets the receiver; it is called on the thread that calls Announce or Notify.
  void OnNotice(std::function<void(const std::string&)> told) { on_notice_ = std::move(told); }
  void Workers(const catalog::JobWorkers& workers);
  void Metric(int64_t step, const std::string& name, double value);
  // Receives what the job's threads spend their time on; stored by Finish, as metrics.
  ProfileSum& profile() { return profile_; }
  // Stores it now, for a process that does not call Finish; once.
  void RecordProfile() EXCLUDES(mutex_);
  // Returns when all events so far are in the catalog, or cannot be written now.
  void Flush() EXCLUDES(mutex_);
  // Writes the final state: Succeeded, Cancelled (57014) or Failed with the error's text. Returns
  // `outcome`, or the catalog's own error if the job succeeded but could not be recorded. If the
  // database cannot be written now, or within the moment that a cancelled statement allows, the job
  // is handed over (HandOver) to be recorded later. If it has ended in the catalog already, and
  // `ended` does not contradict that, the outcome is the one that is recorded there.
  Status Finish(const Status& ended);
  // The statement's answer (AnswerBytes), stored with the job if it succeeds. Finish stores a
  // failure.
  void Answer(std::string answer) { job_.answer = std::move(answer); }
  const std::string& answer() const { return job_.answer; }
  // How the job ends if it succeeds now, with this answer: for ModelStore::PutAndEnd.
  catalog::Job Success(std::string answer) EXCLUDES(mutex_);
  // It has ended so in the catalog: Finish only writes the rest of its events.
  void HasSucceeded(std::string answer) EXCLUDES(mutex_);
  // From now on a failure suspends the job instead: its row keeps what the next process needs to
  // continue it.
  void SuspendInstead() { suspends_ = true; }
  // Another process writes the final state; this one only stops watching.
  void Leave();
  // Whether CANCEL JOB stopped it (rather than the end of the statement or the process).
  bool cancel_requested() const { return cancel_requested_; }
  // Whether the database has lost the snapshot that the job was reading.
  bool snapshot_lost() const { return snapshot_lost_; }
  void set_snapshot_lost(bool lost) { snapshot_lost_ = lost; }

 private:
  JobRecord(catalog::Catalog& catalog, catalog::Job job, std::stop_token outer, HandOver hand_over,
            Reason reason);
  void Watch(const std::stop_token& self);
  void LookForCancel();
  void RecordLiveness();
  void WriteRows();
  void WriteProgress() EXCLUDES(mutex_);
  void WriteNotices() EXCLUDES(mutex_);
  // Adds notices that readers of the row may have missed before it ends.
  std::string WithLastNotices(std::string answer) EXCLUDES(mutex_);
  void SetOutcome(const Status& outcome) EXCLUDES(mutex_);
  void HandOverTheRest() EXCLUDES(mutex_);
  // The outcome of a job that was over in the catalog when its end was to be written.
  Status OutcomeInCatalog(const Status& outcome);
  // Whether it failed in a way that allows writing later.
  bool IsForLater(const Status& written) const;
  // Adds the newest point of the training's progress to the metrics if it is due, or the last one.
  void TakePoint(bool last) EXCLUDES(mutex_, writing_);
  void ThinWhereFull(const std::vector<catalog::JobMetric>& stored) REQUIRES(writing_);
  void AbortWritesOnceStopped(const std::stop_token& self);
  Status Write() EXCLUDES(mutex_, writing_);

  std::stop_source give_up_;  // ends the waits of `jobs_`
  const std::unique_ptr<catalog::JobStore> jobs_;
  catalog::Job job_;
  const HandOver hand_over_;
  const Reason reason_;
  std::function<void(const std::string&)> on_notice_;
  bool finished_ = false;
  bool succeeded_ = false;  // in the catalog
  std::atomic<bool> cancel_requested_ = false;
  std::atomic<bool> snapshot_lost_ = false;
  std::atomic<bool> suspends_ = false;
  std::atomic<bool> taken_over_ = false;  // another process runs the job
  Mutex writing_;                         // held while writing; taken before mutex_
  Mutex mutex_;
  std::condition_variable_any wake_;
  UnwrittenNews news_ GUARDED_BY(mutex_);
  std::vector<catalog::JobMetric> newest_ GUARDED_BY(mutex_);  // of the training's progress
  MetricPoints points_ GUARDED_BY(writing_){SteadyClock().Now()};
  std::atomic<int64_t> rows_read_ = 0;
  std::atomic<int64_t> rows_trained_ = 0;
  std::atomic<bool> keeps_progress_ = false;
  ProfileSum profile_;
  bool profile_recorded_ = false;
  std::string progress_ GUARDED_BY(mutex_);  // not written yet
  int64_t rows_written_ = 0;  // their sum when last written; used by the watcher only
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> outer_callback_;
  std::jthread aborter_;  // runs after the end of the job
  std::jthread watcher_;  // last: stops before the members that it uses are destroyed
};

}  // namespace sluice::executor
