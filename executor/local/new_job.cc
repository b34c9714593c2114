#include "executor/local/new_job.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/local/job_process.pb.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

Result<int64_t> MakeJobRow(const JobConfig& config, Context& context, catalog::JobRunner runner) {
  const plan::Plan& plan = config.plan();
  catalog::Job job;
  if (plan.has_train()) {
    job.kind = "train";
    job.model = plan.train().into_name();
  } else if (plan.has_predict()) {
    job.kind = "predict";
    job.model = plan.predict().model_name();
  } else {
    job.kind = "evaluate";
    job.model = plan.evaluate().model_name();
  }
  job.statement = context.statement;
  job.user = context.user;
  job.request = config.training_job_uid();
  job.started_micros = WallMicros();
  job.runner = std::move(runner);
  job.runner.seen_micros = job.started_micros;
  // An error here becomes the job's.
  const Result<Schema> columns = DescribeResult(plan, context);
  if (columns.ok()) {
    job.answer = AnswerBytes(*columns);
  }
  return context.catalog.JobsFor(context.stop)->Create(job);
}

void AbandonNewJob(catalog::JobStore& jobs, int64_t job, const Status& why) {
  const auto state =
      why.code() == Code::kCancelled ? catalog::JobState::kCancelled : catalog::JobState::kFailed;
  Status ended = jobs.Abandon(job, WallMicros(), state, why.ToString(), AnswerBytes(why));
  ended.Add(jobs.GiveUpRequest(job));
  if (!ended.ok()) {
    log::Warn("job={} has not begun, and its row does not say so: {}", job, ended.ToString());
  }
}

}  // namespace sluice::executor
