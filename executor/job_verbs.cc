#include "executor/job_verbs.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "executor/cluster.h"
#include "executor/executor.h"
#include "executor/job_allocation.h"
#include "executor/job_answer.h"
#include "executor/job_news.h"
#include "executor/job_profile.h"
#include "executor/job_takeover.h"
#include "executor/lost_jobs.h"
#include "executor/place_internal.h"
#include "executor/result_rows.h"
#include "executor/row_listener.h"

namespace sluice::executor {
namespace {

// Interval at which WAIT JOB reads the job's row, which another process may be writing.
constexpr std::chrono::milliseconds kWaitStep(200);
// The same for a job whose process reports its end; needed for its events.
constexpr std::chrono::milliseconds kHeardStep(1'000);

// Interval of looking for jobs whose process was lost.
constexpr double kLostSeconds = 2;

// SHOW JOBS without a number: a screen's worth.
constexpr int64_t kJobsShown = 20;

// Continues jobs whose processes are gone where possible, or marks them as ended, and removes what
// those processes left behind. Users who may only read see the jobs as they are.
void LookForLost(Context& context) {
  Status marked = TakeOverLostJobs(context).status();
  marked.Add(context.source.DropLeftovers());
  if (!marked.ok() && marked.sqlstate() != "42501") {
    log::Warn("jobs that were lost cannot be marked: {}", marked.ToString());
  }
}

// What a running job without a process waits for; "": its process lives, as far as we can know.
std::string WaitsFor(int64_t id, catalog::JobStore& jobs) {
  const auto waiting = FindWaitingJobs(jobs);
  for (const WaitingJob& one : waiting.ok() ? *waiting : std::vector<WaitingJob>()) {
    if (one.job.id == id) {
      return WhatFor(one);
    }
  }
  return "";
}

Result<catalog::Job> FindJob(int64_t id, Span span, catalog::JobStore& jobs) {
  auto job = jobs.Find(id);
  if (!job.ok()) {
    Status status = job.status();
    return std::move(status).At(span);
  }
  return job;
}

double SecondsOf(const catalog::Job& job) {
  const int64_t end = job.finished_micros != 0 ? job.finished_micros : WallMicros();
  return static_cast<double>(end - job.started_micros) / 1e6;
}

Value TimeOrNull(int64_t micros) {
  return micros == 0 ? Value() : Value(FormatTimestamp(micros));
}

// How the job in a row has ended, as the outcome of the statement that waits for it.
Status OutcomeOf(const catalog::Job& job, const std::string& answer, Span span) {
  const Status kept = ErrorOfAnswer(answer);
  if (job.state == catalog::JobState::kCancelled) {
    return Cancelled(fmt::format("job {} was cancelled", job.id)).At(span);
  }
  if (job.state != catalog::JobState::kFailed) {
    return OkStatus();
  }
  if (kept.ok()) {  // in the row of an earlier version
    return Status(Code::kFailedPrecondition, fmt::format("job {} failed: {}", job.id, job.error))
        .At(span);
  }
  Status outcome;
  for (const Diagnostic& diagnostic : kept.diagnostics()) {
    outcome.Add(Status(diagnostic.code,
                       outcome.ok() ? fmt::format("job {} failed: {}", job.id, diagnostic.message)
                                    : diagnostic.message)
                    .SqlState(diagnostic.sqlstate)
                    .Detail(diagnostic.detail)
                    .Hint(diagnostic.hint)
                    .At(span));
  }
  return outcome;
}

// The events of a job for a statement that waits for it.
class JobWatch {
 public:
  JobWatch(const plan::JobPlan& plan, Context& context, ResultSink& sink)
      : plan_(plan),
        span_(SpanOf(plan.place())),
        context_(context),
        sink_(sink),
        jobs_(context.catalog.JobsFor(context.stop)) {}

  Status Run() {
    for (;;) {
      const TimePoint now = clock_.Now();
      if (!looked_for_lost_ || SecondsBetween(*looked_for_lost_, now) >= kLostSeconds) {
        LookForLost(context_);
        looked_for_lost_ = now;
        ReportPurpose();
      }
      ASSIGN_OR_RETURN(const catalog::Job job, FindJob(plan_.job(), span_, *jobs_));
      if (catalog::HasEnded(job.state)) {
        return End(job);
      }
      RETURN_IF_ERROR(ReportEvents());
      Listen();
      Wait();
      if (context_.stop.stop_requested()) {
        return Cancelled("cancelled while waiting; the job goes on").At(span_);
      }
    }
  }

 private:
  Status End(const catalog::Job& job) {
    ASSIGN_OR_RETURN(const std::string answer, jobs_->Answer(job.id));
    RETURN_IF_ERROR(OutcomeOf(job, answer, span_));
    if (ColumnsOfAnswer(answer).columns.empty()) {
      RETURN_IF_ERROR(ShowJob(job.id, span_, context_, sink_));
      sink_.Done("WAIT JOB");
      return OkStatus();
    }
    return SendAnswer(answer, sink_);
  }

  void ReportPurpose() {
    const std::string waits_for = WaitsFor(plan_.job(), *jobs_);
    if (!waits_for.empty() && !told_what_for_) {
      sink_.Notice(fmt::format("job {} waits for {}", plan_.job(), waits_for));
    }
    told_what_for_ = !waits_for.empty();
  }

  Status ReportEvents() {
    ASSIGN_OR_RETURN(const std::vector<catalog::JobEvent> events, jobs_->Events(plan_.job()));
    for (; shown_events_ < events.size(); ++shown_events_) {
      const catalog::JobEvent& event = events[shown_events_];
      sink_.Notice(
          fmt::format("{} {} {}", FormatTimestamp(event.micros), event.kind, event.detail));
    }
    return OkStatus();
  }

  // Connects to the job's own process, once: one on this machine reports progress and its end.
  void Listen() {
    if (looked_) {
      return;
    }
    looked_ = true;
    const auto running = jobs_->Running();
    for (const catalog::Job& job : running.ok() ? *running : std::vector<catalog::Job>()) {
      if (job.id == plan_.job() && job.runner.place.starts_with(kPodsPlace)) {
        listener_ = ListenToRow(*jobs_, job.id);
        return;
      }
      auto listener = job.id == plan_.job() ? ListenToJob(job.runner)
                                            : Result<std::unique_ptr<JobListener>>(nullptr);
      if (listener.ok() && *listener != nullptr) {
        listener_ = *std::move(listener);
      }
    }
  }

  // Waits until the row should be read again.
  void Wait() {
    const auto until = std::chrono::steady_clock::now() + (listener_ ? kHeardStep : kWaitStep);
    while (listener_ != nullptr) {
      const JobListener::News news = listener_->Next(context_.stop, until);
      if (const auto* progress = std::get_if<elastic::Progress>(&news)) {
        sink_.Progress(*progress);
      } else if (std::holds_alternative<JobListener::Nothing>(news)) {
        return;
      } else if (std::holds_alternative<JobListener::Ended>(news) ||
                 std::holds_alternative<JobListener::Gone>(news)) {
        listener_.reset();  // the row has the outcome, now or in a moment
        looked_ = false;
        looked_for_lost_.reset();
        return;
      }
    }
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock<std::mutex> lock(mutex);
    wake.wait_until(lock, context_.stop, until, [] { return false; });
  }

  const plan::JobPlan& plan_;
  const Span span_;
  Context& context_;
  ResultSink& sink_;
  const std::unique_ptr<catalog::JobStore> jobs_;
  std::unique_ptr<JobListener> listener_;
  bool looked_ = false;  // for a process to connect to
  const SteadyClock clock_;
  std::optional<TimePoint> looked_for_lost_;
  bool told_what_for_ = false;
  size_t shown_events_ = 0;
};

Status CancelSuspended(const catalog::Job& job, Context& context, catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  const Status outcome = Cancelled("the job was cancelled while it was suspended");
  RETURN_IF_ERROR(jobs.Abandon(job.id, WallMicros(), catalog::JobState::kCancelled,
                               outcome.ToString(), AnswerBytes(outcome)));
  for (const catalog::Job& one : running) {
    if (one.id == job.id && context.cluster != nullptr) {
      context.cluster->ForgetJob(one.runner);
    }
  }
  return OkStatus();
}

Status CancelJob(const plan::JobPlan& plan, Context& context, ResultSink& sink) {
  const auto jobs = context.catalog.JobsFor(context.stop);
  Status marked = MarkLostJobs(*jobs);
  ASSIGN_OR_RETURN(const catalog::Job job, FindJob(plan.job(), SpanOf(plan.place()), *jobs));
  if (catalog::HasEnded(job.state)) {
    return Status(Code::kFailedPrecondition, fmt::format("job {} has ended already: {}", job.id,
                                                         catalog::JobStateName(job.state)))
        .At(SpanOf(plan.place()));
  }
  RETURN_IF_ERROR(jobs->RequestCancel(job.id));
  if (job.state == catalog::JobState::kSuspended) {  // no process of it runs that could be notified
    RETURN_IF_ERROR(CancelSuspended(job, context, *jobs));
  }
  marked.Add(MarkLostJobs(*jobs));  // a job without a process is not notified
  if (!marked.ok()) {
    log::Warn("jobs that were lost cannot be marked: {}", marked.ToString());
  }
  sink.Notice(fmt::format("job {} was asked to stop", job.id));
  sink.Done("CANCEL JOB");
  return OkStatus();
}

// The last that were recorded; nothing for a job without processes.
std::optional<catalog::JobWorkers> LastWorkers(const std::vector<catalog::JobMetric>& metrics) {
  catalog::JobWorkers workers;
  int64_t* const values[] = {&workers.now, &workers.wanted, &workers.min, &workers.max};
  bool any = false;
  for (const catalog::JobMetric& metric : metrics) {
    for (size_t i = 0; i < std::size(values); ++i) {
      if (metric.name == catalog::kJobWorkersMetrics[i]) {
        *values[i] = static_cast<int64_t>(metric.value);
        any = true;
      }
    }
  }
  return any ? std::optional(workers) : std::nullopt;
}

// A job that never had a worker has not begun; otherwise it has lost its workers.
std::string ConditionOf(const catalog::JobWorkers& workers,
                        const std::vector<catalog::JobMetric>& metrics) {
  if (workers.now >= workers.min) {
    return "Running";
  }
  const bool begun = std::any_of(metrics.begin(), metrics.end(), [](const auto& metric) {
    return metric.name == catalog::kJobWorkersMetrics[0] && metric.value > 0;
  });
  return begun ? "Degraded" : "Waiting";
}

// The events of pods: "NAME on NODE", followed by how it ended.
constexpr char kPodStarted[] = "pod_started";
constexpr char kPodEnded[] = "pod_ended";

// What has become of each, by name. `over`: the job has ended, and with it all pods that still ran.
std::map<std::string, std::string> PodsOf(const std::vector<catalog::JobEvent>& events, bool over) {
  std::map<std::string, std::string> pods;
  for (const catalog::JobEvent& event : events) {
    if (event.kind == kPodStarted || event.kind == kPodEnded) {
      const size_t name = std::min(event.detail.find_first_of(" :"), event.detail.size());
      const size_t rest = event.detail.find_first_not_of(" :", name);
      const std::string state = rest == std::string::npos ? "" : event.detail.substr(rest);
      pods[event.detail.substr(0, name)] =
          event.kind == kPodEnded
              ? state
              : fmt::format("{}: {}", state, over ? "ended with the job" : "runs");
    }
  }
  return pods;
}

// Where the runner of a job is.
std::string PlaceOf(const catalog::JobRunner& runner) {
  if (runner.place.starts_with(kPodsPlace)) {
    const std::string rest = runner.place.substr(kPodsPlace.size());
    return fmt::format("pods in {}", rest.substr(0, rest.find('/')));
  }
  return FindProcess({runner.place, runner.pid, runner.started}) == ProcessState::kElsewhere
             ? "another machine"
             : "this machine";
}

// For a job that has not ended. `workers`: now / granted / at most.
struct RunsAt {
  Value place, workers;
};
Result<RunsAt> WhereItRuns(int64_t id, const std::vector<catalog::Job>& running,
                           catalog::JobStore& store) {
  RunsAt at;
  for (const catalog::Job& job : running) {
    if (job.id != id) {
      continue;
    }
    at.place = PlaceOf(job.runner);
    ASSIGN_OR_RETURN(const std::vector<catalog::JobMetric> metrics, store.Metrics(id));
    if (const std::optional<catalog::JobWorkers> workers = LastWorkers(metrics)) {
      at.workers = fmt::format("{}/{}/{}", workers->now, workers->wanted, workers->max);
    }
  }
  return at;
}

}  // namespace

Status ShowJobs(const plan::ShowPlan& plan, Context& context, ResultSink& sink) {
  const auto store = context.catalog.JobsFor(context.stop);
  LookForLost(context);
  const int64_t most = plan.all() ? std::numeric_limits<int64_t>::max()
                                  : (plan.has_limit() ? plan.limit() : kJobsShown);
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> jobs, store->List(most));
  ResultRows rows(Schema{{{"job", DataType::kInt64, "bigint"},
                          {"state", DataType::kText, "text"},
                          {"kind", DataType::kText, "text"},
                          {"model", DataType::kText, "text"},
                          {"user", DataType::kText, "text"},
                          {"rows", DataType::kInt64, "bigint"},
                          {"started", DataType::kTimestamp, "timestamp"},
                          {"seconds", DataType::kDouble, "double precision"},
                          {"place", DataType::kText, "text"},
                          {"workers", DataType::kText, "text"}}});
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, store->Running());
  for (const catalog::Job& job : jobs) {
    ASSIGN_OR_RETURN(const RunsAt at, WhereItRuns(job.id, running, *store));
    rows.Add({job.id, std::string(catalog::JobStateName(job.state)), job.kind, job.model, job.user,
              std::max(job.rows_trained, job.rows_read), job.started_micros, SecondsOf(job),
              at.place, at.workers});
  }
  RETURN_IF_ERROR(rows.SendTo(sink));
  if (static_cast<int64_t>(jobs.size()) == most && !plan.has_limit()) {
    ASSIGN_OR_RETURN(const int64_t all, store->Count());
    if (all > most) {
      sink.Notice(
          fmt::format("the newest {} of {} jobs; SHOW JOBS LIMIT n shows more, SHOW JOBS "
                      "ALL every one",
                      most, all));
    }
  }
  return OkStatus();
}

Schema JobColumns() {
  return Schema{{{"section", DataType::kText, "text"},
                 {"name", DataType::kText, "text"},
                 {"value", DataType::kText, "text"}}};
}

Status ShowJob(int64_t id, Span span, Context& context, ResultSink& sink) {
  const auto jobs = context.catalog.JobsFor(context.stop);
  LookForLost(context);
  ASSIGN_OR_RETURN(const catalog::Job job, FindJob(id, span, *jobs));
  ASSIGN_OR_RETURN(const std::vector<catalog::JobEvent> events, jobs->Events(id));
  ResultRows rows(JobColumns());
  const auto number = [](int64_t value) { return Value(fmt::format("{}", value)); };
  rows.Add({"job", "number", number(job.id)});
  rows.Add({"job", "state", std::string(catalog::JobStateName(job.state))});
  rows.Add({"job", "kind", job.kind});
  rows.Add({"job", "model", job.model});
  rows.Add({"job", "user", job.user});
  rows.Add({"job", "statement", job.statement});
  rows.Add({"job", "started", TimeOrNull(job.started_micros)});
  rows.Add({"job", "finished", TimeOrNull(job.finished_micros)});
  rows.Add({"job", "seconds", fmt::format("{:.3f}", SecondsOf(job))});
  if (job.state == catalog::JobState::kRunning) {
    if (std::string waits_for = WaitsFor(id, *jobs); !waits_for.empty()) {
      rows.Add({"job", "waits for", std::move(waits_for)});
    }
  }
  if (!job.error.empty()) {
    rows.Add({"job", "error", job.error});
  }
  rows.Add({"rows", "read", number(job.rows_read)});
  rows.Add({"rows", "trained", number(job.rows_trained)});
  rows.Add({"rows", "retried", number(job.rows_retried)});
  rows.Add({"rows", "skipped", number(job.rows_skipped)});
  ASSIGN_OR_RETURN(const std::vector<catalog::JobMetric> metrics, jobs->Metrics(id));
  if (const std::optional<catalog::JobWorkers> workers = LastWorkers(metrics)) {
    if (job.state == catalog::JobState::kRunning) {
      rows.Add({"workers", "state", ConditionOf(*workers, metrics)});
      rows.Add({"workers", "now", number(workers->now)});
      rows.Add({"workers", "wanted", number(workers->wanted)});
    }
    rows.Add({"workers", "allowed", fmt::format("{}..{}", workers->min, workers->max)});
  }
  for (const Allocation& allocation : AllocationsOf(metrics, events)) {
    rows.Add({"allocation", FormatTimestamp(allocation.micros),
              fmt::format("{} worker{}{}{}", allocation.workers, allocation.workers == 1 ? "" : "s",
                          allocation.reason.empty() ? "" : ": ", allocation.reason)});
  }
  if (std::string knee = DescribeKnee(ThroughputOf(metrics)); !knee.empty()) {
    rows.Add({"workers", "knee", std::move(knee)});
  }
  if (const std::optional<Profile> profile = ProfileOf(metrics)) {
    for (auto& [phase, seconds] : DescribeProfile(*profile)) {
      rows.Add({"profile", std::move(phase), std::move(seconds)});
    }
  }
  for (const auto& [pod, state] : PodsOf(events, catalog::HasEnded(job.state))) {
    rows.Add({"pod", pod, state});
  }
  for (const catalog::JobEvent& event : events) {
    if (event.kind == kPodStarted || event.kind == kPodEnded) {
      continue;
    }
    rows.Add(
        {"event", event.kind, fmt::format("{} {}", FormatTimestamp(event.micros), event.detail)});
  }
  return rows.SendTo(sink);
}

Status ExecuteJob(const plan::JobPlan& plan, Context& context, ResultSink& sink) {
  return plan.action() == plan::JobPlan::WAIT ? JobWatch(plan, context, sink).Run()
                                              : CancelJob(plan, context, sink);
}

}  // namespace sluice::executor
