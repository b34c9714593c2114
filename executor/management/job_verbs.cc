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
