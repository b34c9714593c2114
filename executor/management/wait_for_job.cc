#include "executor/management/wait_for_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/sleep.h"
#include "catalog/catalog.h"
#include "catalog/job_store.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_news.h"
#include "executor/local/row_listener.h"
#include "executor/management/job_lookup_internal.h"
#include "executor/management/show_jobs.h"
#include "executor/place_internal.h"

namespace sluice::executor {
namespace {

// Interval at which WAIT JOB reads the job's row, which another process may be writing.
constexpr std::chrono::milliseconds kWaitStep(200);
// The same for a job whose process reports its end; needed for its events.
constexpr std::chrono::milliseconds kHeardStep(1'000);

// Interval of looking for jobs whose process was lost.
constexpr double kLostSeconds = 2;

// The last events before WAIT JOB that it shows.
constexpr size_t kEarlierEvents = 10;

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
        LookForLostJobs(context_);
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

  // Those of epochs are left out: progress says as much.
  Status ReportEvents() {
    ASSIGN_OR_RETURN(std::vector<catalog::JobEvent> events,
                     jobs_->Events(plan_.job(), seen_events_));
    const bool first = seen_events_ == 0;
    seen_events_ += static_cast<int64_t>(events.size());
    std::erase_if(events, IsEpochEvent);
    const size_t skipped =
        first ? events.size() - std::min(events.size(), kEarlierEvents) : size_t{0};
    if (skipped > 0) {
      sink_.Notice(fmt::format("{} earlier events: SHOW JOB {}", skipped, plan_.job()));
    }
    for (size_t i = skipped; i < events.size(); ++i) {
      sink_.Notice(fmt::format("{} {} {}", FormatTimestamp(events[i].micros), events[i].kind,
                               events[i].detail));
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
    SleepFor(until - std::chrono::steady_clock::now(), context_.stop);
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
  int64_t seen_events_ = 0;
};

}  // namespace

Status WaitForJob(const plan::JobPlan& plan, Context& context, ResultSink& sink) {
  return JobWatch(plan, context, sink).Run();
}

}  // namespace sluice::executor
