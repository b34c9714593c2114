#pragma once

#include <condition_variable>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "elastic/master/master.h"
#include "elastic/master/progress.h"
#include "elastic/master/train_outcome.h"
#include "elastic/master/waking_clock.h"
#include "elastic/storage/journal.h"

namespace sluice::elastic {

// A Master that many threads may call. While it runs, one thread writes its journal and carries out
// its actions, one reports events, and one detects lost processes: a journal that cannot be written
// delays only what has to be in it first. Thread-safe except for Pump.
class MasterHost {
 public:
  // Carries out one action, or has it carried out: while it waits, the journal and the events wait,
  // too. An error ends the job.
  using Handler = std::function<Status(const Master::Action&)>;
  // `events` may be called by any thread when the journal has to wait for its database.
  // `master`: a new one, or one that took over (Master::TakeOver). Its decisions are in `journal`,
  // under `term`, before any of its actions is carried out, and before any process learns that the
  // job is over, of a new epoch's tasks, or where to continue in an all-reduce world. A journal
  // that cannot be written, or that belongs to a later term, ends this master. null: there is none.
  // The journal must outlive it.
  MasterHost(Master master, JournalStore* journal, JournalTerm term, Handler handler,
             const ProgressCallback& progress, const EventCallback& events);

  // Runs `function(Master&, TimePoint now)` with the lock, wakes threads that wait for a change,
  // and returns its result. It must not wait for anything, nor call the host.
  template <typename Function>
  auto With(const Function& function) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++changes_;
    changed_.notify_all();
    return function(master_, clock_.Now());
  }

  // Waits up to `wait_seconds` for a task if there is none and the worker is idle.
  Result<MasterLink::Answer> Take(Incarnation worker, bool waiting, const std::vector<TaskId>& held,
                                  double wait_seconds);
  // Waits up to `wait_seconds` for the slowest worker.
  Result<bool> MayBegin(Incarnation worker, int64_t pushed, double wait_seconds);
  // All-reduce. Waits up to `wait_seconds` for the workers to regroup.
  Result<WorldAnswer> Regroup(Incarnation worker, const WorldArrival& arrival, double wait_seconds);
  Result<bool> Heartbeat(Incarnation worker);  // true: the job is over

  // When this returns OK, all decisions so far are in the journal. A caller that arrives while
  // another thread writes is served by the next group. Unavailable: the journal takes too long
  // (Master::Options::journal_seconds).
  Status Save() EXCLUDES(mutex_);
  // Writes the journal, has the master's actions carried out, passes on events and progress: for a
  // host without a running Run.
  void Pump();
  // Runs until the job is over, or cancelled by `stop`. This thread passes on events and progress.
  // A journal that takes too long ends the job.
  void Run(std::stop_token stop);
  // Stores the parameter fleet's state; OK when it is in the journal (or there is no journal).
  Status Remember(const Placement& placement);
  bool finished() const;
  bool suspended() const;  // and the journal was never refused
  // An error also if the job succeeded, but another master has begun meanwhile.
  Status result() const;
  // Reports the final progress of a job that has failed or was cancelled.
  void ReportLastProgress();
  Status SaveCut(CheckpointManifest* manifest) const;  // as of Master; Cancelled: the job is over

 private:
  void SaveAndAct() EXCLUDES(mutex_);
  void Report() EXCLUDES(mutex_);
  void Write(const std::stop_token& done) EXCLUDES(mutex_);
  template <typename Function>
  void Retry(double seconds, const Function& attempt) EXCLUDES(mutex_);
  // Wakes the callers that wait for the slowest worker, if it has moved.
  void NotifyIfMoved(const std::pair<int64_t, size_t>& before) REQUIRES(mutex_);
  Status SaveForWorker() EXCLUDES(mutex_);
  Status TakeEntry(std::string* entry, bool* anew) EXCLUDES(mutex_);
  void Judge(const std::stop_token& done) EXCLUDES(mutex_);
  bool WaitToWriteAgain(const Status& why, TimePoint begun) EXCLUDES(mutex_);
  void CheckJournal(TimePoint now) REQUIRES(mutex_);
  void FailJournal(const Status& why) REQUIRES(mutex_);
  bool ShouldSave(TimePoint now) const EXCLUDES(mutex_);
  Result<MasterLink::Answer> WaitForTask(Incarnation worker, bool waiting,
                                         const std::vector<TaskId>& held, double wait_seconds);
  bool BeginsEpoch(const MasterLink::Answer& answer) const EXCLUDES(mutex_);
  Result<WorldAnswer> WaitForRegroup(Incarnation worker, const WorldArrival& arrival,
                                     double wait_seconds);
  Result<bool> WaitToBegin(Incarnation worker, int64_t pushed, double wait_seconds, bool* entered);

  const SteadyClock steady_;
  const WakingClock clock_{steady_};
  JournalStore* const journal_ = nullptr;  // nullptr: nothing outlives this process
  const JournalTerm term_;
  const Handler handler_;
  const ProgressCallback& progress_;
  const EventCallback& events_;
  TimePoint last_progress_;  // used by the thread that reports
  // Used by the thread that writes:
  TimePoint last_save_{};
  std::vector<Master::Action> unsaved_actions_;  // not carried out before they are in the journal

  Status saved_ GUARDED_BY(mutex_);
  std::optional<TimePoint> writing_since_ GUARDED_BY(mutex_);  // one group at a time

  mutable Mutex mutex_;
  // The last epoch whose beginning is in the journal, and with it how the previous one was judged.
  Epoch epoch_written_ GUARDED_BY(mutex_) = Epoch::First();
  std::condition_variable changed_;
  std::condition_variable_any to_do_;  // there are actions
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  Master master_ GUARDED_BY(mutex_);
};

}  // namespace sluice::elastic
