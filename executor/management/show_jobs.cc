#include "executor/management/show_jobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/process.h"
#include "catalog/catalog.h"
#include "catalog/job_store.h"
#include "executor/executor.h"
#include "executor/jobs/job_profile.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/management/job_allocation.h"
#include "executor/management/job_lookup_internal.h"
#include "executor/place_internal.h"
#include "executor/processes/process_title.h"
#include "executor/result_rows.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// SHOW JOBS without a number: a screen's worth.
constexpr int64_t kJobsShown = 20;

// SHOW JOB: the last events that tell of epochs.
constexpr std::ptrdiff_t kEpochEventsShown = 20;

constexpr int64_t kMicrosAMinute = 60'000'000;

double SecondsOf(const catalog::Job& job) {
  const int64_t end = job.finished_micros != 0 ? job.finished_micros : WallMicros();
  return static_cast<double>(end - job.started_micros) / 1e6;
}

Value TimeOrNull(int64_t micros) {
  return micros == 0 ? Value() : Value(FormatTimestamp(micros));
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
    const std::string where = fmt::format("pods in {}", rest.substr(0, rest.find('/')));
    return IsSilentOnPods(runner)
               ? fmt::format("{}, silent for {} minutes", where,
                             (WallMicros() - runner.seen_micros) / kMicrosAMinute)
               : where;
  }
  return FindProcess({runner.place, runner.pid, runner.started}) == ProcessState::kElsewhere
             ? "another machine"
             : "this machine";
}

// As was recorded when it was; "" for a job of an earlier version.
std::string WhySuspended(const std::vector<catalog::JobEvent>& events) {
  const auto last =
      std::find_if(events.rbegin(), events.rend(),
                   [](const catalog::JobEvent& event) { return event.kind == "suspended"; });
  return last == events.rend() ? "" : last->detail;
}

// For a job that has not ended. `workers`: now / granted / at most.
struct RunsAt {
  Value place, workers;
};
Result<RunsAt> WhereItRuns(int64_t id, catalog::JobState state,
                           const std::vector<catalog::Job>& running, catalog::JobStore& store) {
  RunsAt at;
  if (state == catalog::JobState::kSuspended) {
    ASSIGN_OR_RETURN(const std::vector<catalog::JobEvent> events, store.Events(id));
    at.place = fmt::format("none: {}", WhySuspended(events));
    return at;
  }
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

// Those on this machine; none: the job runs elsewhere.
Result<std::vector<TitledProcess>> ProcessesOf(int64_t job, catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  const auto found = std::find_if(running.begin(), running.end(),
                                  [job](const catalog::Job& one) { return one.id == job; });
  std::vector<TitledProcess> processes;
  if (found == running.end() || FindProcess({found->runner.place, found->runner.pid,
                                             found->runner.started}) != ProcessState::kRunning) {
    return processes;
  }
  const std::string title = TitleOfJob(job);
  constexpr std::string_view kPrefix = "sluice: ";
  processes.push_back({found->runner.pid, title.substr(kPrefix.size())});
  for (TitledProcess& process : DescendantsOf(found->runner.pid)) {
    if (process.title.starts_with(title + " ")) {
      processes.push_back({process.pid, process.title.substr(kPrefix.size())});
    }
  }
  return processes;
}

}  // namespace

Status ShowJobs(const plan::ShowPlan& plan, Context& context, ResultSink& sink) {
  const auto store = context.catalog.JobsFor(context.stop);
  LookForLostJobs(context);
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
    ASSIGN_OR_RETURN(const RunsAt at, WhereItRuns(job.id, job.state, running, *store));
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
  LookForLostJobs(context);
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
  if (job.state == catalog::JobState::kSuspended) {
    rows.Add({"job", "suspended", WhySuspended(events)});
  }
  if (!job.error.empty()) {
    rows.Add({"job", "error", job.error});
  }
  if (job.state == catalog::JobState::kRunning) {
    ASSIGN_OR_RETURN(const std::vector<TitledProcess> processes, ProcessesOf(id, *jobs));
    for (const TitledProcess& process : processes) {
      rows.Add({"process", process.title, number(process.pid)});
    }
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
  auto left_out = std::count_if(events.begin(), events.end(), IsEpochEvent) - kEpochEventsShown;
  if (left_out > 0) {
    rows.Add({"event", "(left out)",
              fmt::format("{} of earlier epochs; sluice.job_events has them", left_out)});
  }
  for (const catalog::JobEvent& event : events) {
    const bool of_pod = event.kind == kPodStarted || event.kind == kPodEnded;
    if (!of_pod && !(IsEpochEvent(event) && left_out-- > 0)) {
      rows.Add(
          {"event", event.kind, fmt::format("{} {}", FormatTimestamp(event.micros), event.detail)});
    }
  }
  return rows.SendTo(sink);
}

}  // namespace sluice::executor
