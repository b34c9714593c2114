#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::catalog {

// kSuspended: no process of it runs; it continues from its checkpoint when resumed.
enum class JobState : int {
  kRunning = 1,
  kSucceeded = 2,
  kFailed = 3,
  kCancelled = 4,
  kSuspended = 5
};
std::string_view JobStateName(JobState state);
inline bool HasEnded(JobState state) {
  return state != JobState::kRunning && state != JobState::kSuspended;
}

// The process that runs a job, so that others can tell when it has ended.
struct JobRunner {
  std::string place;    // where its number is valid: a boot of a machine, a container
  int64_t pid = 0;      // 0: not known
  int64_t started = 0;  // start time of the process in the system's unit, since numbers are reused
  int64_t seen_micros = 0;
};

// Of a longer statement a job's row has this much.
inline constexpr size_t kMaxStatementBytes = size_t{64} << 10;

struct Job {
  int64_t id = 0;
  JobState state = JobState::kRunning;
  std::string kind;  // "train", "predict", "evaluate"
  std::string statement;
  std::string model;
  std::string user;
  int64_t started_micros = 0;
  int64_t finished_micros = 0;  // 0 while it runs
  int64_t rows_read = 0, rows_trained = 0, rows_retried = 0, rows_skipped = 0;
  std::string error;
  JobRunner runner;   // written by Create, read by Running, compared by End
  std::string owner;  // the role's current name, read by Running; "": a database without roles
  // The job's answer, in a form chosen by the job's runner; written by Create and End, read by
  // Answer. "": unchanged.
  std::string answer;
  // What the job is made for, if no other job may be: a TrainingJob's uid. Written by Create, read
  // by Requested.
  std::string request = {};
};

struct JobEvent {
  int64_t micros = 0;
  std::string kind;  // "worker_started", "worker_lost", "task_requeued", "epoch_done" ...
  std::string detail;
};

struct JobMetric {
  int64_t micros = 0;
  int64_t step = 0;
  std::string name;
  double value = 0;
};

// How many workers a job on processes has; stored as metrics of these names, whenever one changes.
struct JobWorkers {
  int64_t now = 0, wanted = 0, min = 0, max = 0;
  bool operator==(const JobWorkers&) const = default;
};
inline constexpr const char* kJobWorkersMetrics[] = {"workers_now", "workers_wanted", "workers_min",
                                                     "workers_max"};

// Metrics of a running training, as series of points; the step is the epoch.
inline constexpr const char* kJobLossMetric = "loss";
inline constexpr const char* kJobRateMetric = "rows_per_second";
inline constexpr const char* kJobRowsMetric = "rows";  // trained, in all epochs
inline constexpr const char* kJobTrainersMetric = "workers";

// The error of AppendJournal when another master has begun a later term.
bool IsTermOver(const Status& status);
// The error of End, and of ModelStore::PutAndEnd, for a job that has ended already, or has another
// runner.
bool IsJobOver(const Status& status);
Status JobIsOver(int64_t job, JobState state);

// Tables sluice.jobs, sluice.job_events, sluice.job_metrics, sluice.job_terms, sluice.job_journal,
// sluice.job_runners, sluice.job_answers, sluice.job_records, sluice.job_requests.
// On behalf of a catalog's principal: Create makes a job its own, and Find, List, Count,
// RequestCancel and Drop are limited to jobs that it may see. The other functions are for the
// process that runs a job or has found it, and for processes that look after all jobs (Running,
// Abandon, DropEnded). Thread-safe.
class JobStore {
 public:
  // Lists are meant for people; find older jobs by number or by SQL on the table.
  static constexpr int64_t kMaxListed = 1'000;

  virtual ~JobStore() = default;
  // AlreadyExists: there is a job for `job.request`.
  virtual Result<int64_t> Create(const Job& job) = 0;
  // The number of the job that was made for that, also when it has ended.
  virtual Result<std::optional<int64_t>> Requested(const std::string& request) = 0;
  // Another job may be made for what this one was made for.
  virtual Status GiveUpRequest(int64_t job) = 0;
  // Writes how a job ends, and deletes what only a running job needs, in one transaction. Aborted
  // (IsJobOver), with nothing changed: it has ended already, or has another runner than
  // `job.runner` (if that is known).
  virtual Status End(const Job& job) = 0;
  // Progress of a running job; one that has ended meanwhile is not changed.
  virtual Status WriteRows(int64_t job, int64_t read, int64_t trained) = 0;
  virtual Result<Job> Find(int64_t id) = 0;
  // "": none was stored.
  virtual Result<std::string> Answer(int64_t job) = 0;
  // The newest `most`, newest first.
  virtual Result<std::vector<Job>> List(int64_t most) = 0;
  Result<std::vector<Job>> List() { return List(kMaxListed); }
  virtual Result<int64_t> Count() = 0;
  // Jobs without a recorded end, with their runners.
  virtual Result<std::vector<Job>> Running() = 0;
  // Records that the runner is alive at `runner.seen_micros`. False: another one has taken over the
  // job. A pid of 0 stands for the job's current runner.
  virtual Result<bool> Seen(int64_t job, const JobRunner& runner) = 0;
  // `next` runs the job from now on. False: `lost` is no longer its runner, or it has ended.
  virtual Result<bool> TakeOver(int64_t job, const JobRunner& lost, const JobRunner& next) = 0;
  // Ends a job on behalf of its lost runner, as failed or as cancelled; one that has ended
  // meanwhile is not changed.
  virtual Status Abandon(int64_t job, int64_t micros, JobState as, const std::string& error,
                         const std::string& answer) = 0;
  // From RUNNING to SUSPENDED, and back. Aborted: it has ended meanwhile.
  virtual Status SetSuspended(int64_t job, bool suspended) = 0;
  virtual Status AddEvents(int64_t job, const std::vector<JobEvent>& events) = 0;
  virtual Status AddMetrics(int64_t job, const std::vector<JobMetric>& metrics) = 0;
  // Drops every second point of the job's series that have at least `most`; keeps the first and the
  // last.
  virtual Status ThinMetrics(int64_t job, int64_t most) = 0;
  // All but the first `skip`, in order.
  virtual Result<std::vector<JobEvent>> Events(int64_t job, int64_t skip) = 0;
  Result<std::vector<JobEvent>> Events(int64_t job) { return Events(job, 0); }
  virtual Result<std::vector<JobMetric>> Metrics(int64_t job) = 0;
  // The journal of a running job's master, in the order of the appends; deleted at the end of the
  // job, after which nothing is appended. Each master of a job begins a term, a number greater than
  // those before it; appends of older terms are Aborted from then on (IsTermOver).
  virtual Result<int64_t> BeginTerm(int64_t job) = 0;
  // `anew`: these entries replace all earlier ones. `last`: where the journal ended after this
  // term's last append that is known to be stored; none before its first. If it is unknown whether
  // an append was stored (the connection was lost at COMMIT), it is repeated unchanged, and is
  // stored once.
  virtual Status AppendJournal(int64_t job, int64_t term, const std::vector<std::string>& entries,
                               bool anew, std::optional<int64_t>* last) = 0;
  virtual Result<std::vector<std::string>> Journal(int64_t job) = 0;
  // Records that a job's runner stores by name for the process that continues the job; deleted at
  // the end of the job, after which none is stored. The last one of a name counts.
  virtual Status KeepRecord(int64_t job, const std::string& name, const std::string& content) = 0;
  // Records whose names begin with the prefix.
  virtual Result<std::map<std::string, std::string>> Records(int64_t job,
                                                             const std::string& prefix) = 0;
  // CANCEL JOB from any process: the process that runs the job polls for it.
  virtual Status RequestCancel(int64_t id) = 0;
  virtual Result<bool> CancelRequested(int64_t id) = 0;
  // Deletes a job that has ended, with all that is stored of it. 55006: it has not ended.
  virtual Status Drop(int64_t id) = 0;
  // Deletes at most `most` jobs of any owner that ended before that time, except those that a
  // stored model names as its training. Returns how many.
  virtual Result<int64_t> DropEnded(int64_t before_micros, int64_t most) = 0;
};

}  // namespace sluice::catalog
