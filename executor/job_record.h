#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/job_store.h"
#include "executor/job_closer.h"
#include "executor/metric_points.h"

namespace sluice::catalog {
class Catalog;
}

namespace sluice::elastic {
struct Progress;
}

namespace sluice::executor {

struct Context;

// The newest progress of a job (ProgressProto), as a record of its row.
inline constexpr char kProgressRecord[] = "progress";
// What its client should know, and the time behind it, which gives the order.
inline constexpr char kNoticeRecords[] = "notice/";
std::string NoticeName(int64_t micros);  // of such a record

// The row of a running job in the catalog. Made when the work starts; Finish writes how it ended,
// and destruction without Finish writes Failed, so that no job stays "running" behind a dead
// statement. While it lives, CANCEL JOB from any other session stops `stop_token()`. What happens
// is written by a thread of its own, in order, so that a database that is locked or away holds
// nobody up. Thread-safe.
class JobRecord {
 public:
  // Takes over a job that has ended and could not be written down.
  using HandOver =
      std::function<void(const catalog::Job& job, const std::vector<catalog::JobEvent>& events)>;
  // What a stop was for: the outcome as it is told and recorded.
  using Reason = std::function<Status(Status outcome)>;
  // `outer` is the statement's own cancel (Ctrl-C, a client that went away); it ends the waiting
  // for somebody else's lock, too, and then no job begins.
  static Result<std::unique_ptr<JobRecord>> Start(catalog::Catalog& catalog, catalog::Job job,
                                                  std::stop_token outer, HandOver hand_over = {},
                                                  Reason reason = {});
  // Continues a job that another process made: `job.runner`, where it is known, is who runs it now.
  static std::unique_ptr<JobRecord> Adopt(catalog::Catalog& catalog, catalog::Job job,
                                          std::stop_token outer, HandOver hand_over = {});
  ~JobRecord();
  JobRecord(const JobRecord&) = delete;
  JobRecord& operator=(const JobRecord&) = delete;

  int64_t id() const { return job_.id; }
  std::stop_token stop_token() const { return stop_.get_token(); }
  catalog::Job& job() { return job_; }  // row counts for Finish; not while another thread finishes

  // How far the job is, for who looks at it; written to the catalog at most once a second, and
  // when the job fails or is cancelled.
  void Rows(int64_t read, int64_t trained);
  // The same of a training, with its loss, its speed and its workers, which are stored as points of
  // the job's metrics: at most one a second, and the last one when the job ends.
  void Progress(const elastic::Progress& now) EXCLUDES(mutex_);
  // Progress and notices are kept with the row, too, for those who cannot hear this process.
  void KeepProgress() { keeps_progress_ = true; }
  void Event(const std::string& kind, const std::string& detail);
  // An event that whoever waits for the statement is told of, too.
  void Tell(const std::string& kind, const std::string& detail);
  void Notify(const std::string& text) EXCLUDES(mutex_);
  // Who that is; called in the thread that calls Tell or Notify.
  void OnTold(std::function<void(const std::string&)> told) { told_ = std::move(told); }
  void Workers(const catalog::JobWorkers& workers);
  void Metric(int64_t step, const std::string& name, double value);
  // All events so far are in the catalog, or cannot be written now.
  void Flush() EXCLUDES(mutex_);
  // Writes the final state: Succeeded, Cancelled (57014) or Failed with the error's text. Returns
  // `outcome`, or the catalog's own error where the job succeeded but could not be recorded. A
  // database that takes nothing now, or nothing in the moment that a cancelled statement has left
  // for it, hears of it later, where there is somebody to hand it over to.
  Status Finish(const Status& ended);
  // What the statement answers, kept with the job where it succeeds: AnswerBytes. A failure is kept
  // by Finish.
  void Answer(std::string answer) { job_.answer = std::move(answer); }
  // From now on it is suspended rather than that it fails: its row keeps what the next process
  // needs to go on with it.
  void SuspendInstead() { suspends_ = true; }
  // Another process writes the final state; this one only stops watching.
  void Leave();
  // CANCEL JOB was heard (rather than the end of the statement, or of the process).
  bool cancel_requested() const { return cancel_requested_; }
  // The database has lost what the job was reading.
  bool snapshot_lost() const { return snapshot_lost_; }
  void set_snapshot_lost(bool lost) { snapshot_lost_ = lost; }

 private:
  JobRecord(catalog::Catalog& catalog, catalog::Job job, std::stop_token outer, HandOver hand_over,
            Reason reason);
  void Watch(const std::stop_token& self);
  void LookForCancel();
  void SayThatItLives();
  void WriteRows();
  void WriteProgress() EXCLUDES(mutex_);
  void WriteNotices() EXCLUDES(mutex_);
  // What who listens to the row has perhaps not read there before it ends.
  void AnswerWithNotices() EXCLUDES(mutex_);
  // What could not be written now is written later.
  bool IsForLater(const Status& written) const;
  // Puts the newest point of the training's progress among the metrics where it is due, or the
  // last.
  void TakePoint(bool last) EXCLUDES(mutex_, writing_);
  void ThinWhereFull(const std::vector<catalog::JobMetric>& stored) REQUIRES(writing_);
  void HurryOnceStopped(const std::stop_token& self);
  Status Write() EXCLUDES(mutex_, writing_);

  std::stop_source give_up_;  // whatever `jobs_` waits for
  const std::unique_ptr<catalog::JobStore> jobs_;
  catalog::Job job_;
  const HandOver hand_over_;
  const Reason reason_;
  std::function<void(const std::string&)> told_;
  bool finished_ = false;
  std::atomic<bool> cancel_requested_ = false;
  std::atomic<bool> snapshot_lost_ = false;
  std::atomic<bool> suspends_ = false;
  std::atomic<bool> taken_over_ = false;  // another process runs the job
  Mutex writing_;                         // who has it writes; taken before mutex_
  Mutex mutex_;
  std::condition_variable_any wake_;
  std::vector<catalog::JobEvent> events_ GUARDED_BY(mutex_);  // not written yet
  std::vector<catalog::JobMetric> metrics_ GUARDED_BY(mutex_);
  std::vector<catalog::JobMetric> newest_ GUARDED_BY(mutex_);  // of the training's progress
  MetricPoints points_ GUARDED_BY(writing_){SteadyClock().Now()};
  std::atomic<int64_t> rows_read_ = 0;
  std::atomic<int64_t> rows_trained_ = 0;
  std::atomic<bool> keeps_progress_ = false;
  std::string progress_ GUARDED_BY(mutex_);                    // not written yet
  std::map<int64_t, std::string> notices_ GUARDED_BY(mutex_);  // by their times; not written yet
  std::map<int64_t, std::string> last_notices_ GUARDED_BY(mutex_);  // written or not
  int64_t last_notice_ GUARDED_BY(mutex_) = 0;
  int64_t rows_written_ = 0;  // their sum, when they were written last; the watcher's alone
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> outer_callback_;
  std::jthread hurry_;    // from the end of the job on
  std::jthread watcher_;  // last: stops before the members it uses go
};

// The job of a statement that begins.
// `columns`: that it will answer with; none: rows go to the client alone, or are not known yet.
Result<std::unique_ptr<JobRecord>> StartJob(Context& context, const std::string& kind,
                                            const std::string& model, const Schema& columns = {});

}  // namespace sluice::executor
