#include "executor/management/job_verbs.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/job_store.h"
#include "executor/cluster.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/management/job_lookup_internal.h"
#include "executor/management/wait_for_job.h"
#include "executor/place_internal.h"

namespace sluice::executor {
namespace {

// The end of a job of which no process runs that could be notified, as far as anybody knows: a
// master that does run finds that its job is over.
Status EndUnheard(const catalog::JobRunner& runner, int64_t job, const Status& outcome,
                  Context& context, catalog::JobStore& jobs) {
  RETURN_IF_ERROR(jobs.Abandon(job, WallMicros(), catalog::JobState::kCancelled, outcome.ToString(),
                               AnswerBytes(outcome)));
  if (context.cluster != nullptr) {
    context.cluster->ForgetJob(runner);
  }
  return OkStatus();
}

Status CancelUnheard(const catalog::Job& job, Context& context, catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  for (const catalog::Job& one : running) {
    if (one.id != job.id) {
      continue;
    }
    if (job.state == catalog::JobState::kSuspended) {
      return EndUnheard(one.runner, job.id,
                        Cancelled("the job was cancelled while it was suspended"), context, jobs);
    }
    if (IsSilentOnPods(one.runner)) {
      return EndUnheard(one.runner, job.id, Cancelled("the job was cancelled while it was silent"),
                        context, jobs);
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
  RETURN_IF_ERROR(CancelUnheard(job, context, *jobs));
  marked.Add(MarkLostJobs(*jobs));  // a job without a process is not notified
  if (!marked.ok()) {
    log::Warn("jobs that were lost cannot be marked: {}", marked.ToString());
  }
  sink.Notice(fmt::format("job {} was asked to stop", job.id));
  sink.Done("CANCEL JOB");
  return OkStatus();
}

Status DropJob(const plan::JobPlan& plan, Context& context, ResultSink& sink) {
  const auto jobs = context.catalog.JobsFor(context.stop);
  const Status marked = MarkLostJobs(*jobs);  // one whose process was killed has ended
  if (!marked.ok()) {
    log::Warn("jobs that were lost cannot be marked: {}", marked.ToString());
  }
  const Status dropped = jobs->Drop(plan.job());
  if (dropped.code() == Code::kNotFound && plan.if_exists()) {
    sink.Notice(fmt::format("job {} does not exist: nothing to drop", plan.job()));
  } else if (!dropped.ok()) {
    return Status(dropped).At(SpanOf(plan.place()));
  }
  sink.Done("DROP JOB");
  return OkStatus();
}

}  // namespace

Status ExecuteJob(const plan::JobPlan& plan, Context& context, ResultSink& sink) {
  switch (plan.action()) {
    case plan::JobPlan::WAIT:
      return WaitForJob(plan, context, sink);
    case plan::JobPlan::DROP:
      return DropJob(plan, context, sink);
    default:
      return CancelJob(plan, context, sink);
  }
}

}  // namespace sluice::executor
