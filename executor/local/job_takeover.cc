#include "executor/local/job_takeover.h"

#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>

#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/cluster.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_process.pb.h"
#include "executor/local/new_job.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

Status CheckFolder(const plan::TrainPlan& plan, const Context& context) {
  if (!context.checkpoint_root.has_value() || !plan.has_checkpoints()) {
    return OkStatus();
  }
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path root = fs::weakly_canonical(fs::absolute(*context.checkpoint_root), error);
  const std::string& folder = plan.checkpoints().directory();
  const fs::path within = fs::weakly_canonical(folder, error).lexically_relative(root);
  const bool inside = !error && !within.empty() && within != "." && *within.begin() != "..";
  return inside && !context.checkpoint_root->empty()
             ? OkStatus()
             : Status(Code::kPermissionDenied,
                      fmt::format("its checkpoints in '{}' are not of this gateway", folder))
                   .Hint("CANCEL JOB, and run the statement again");
}

// The owner of a row can change it, and must not make a gateway use other folders, or do what is no
// job's.
Status CheckKept(const plan::Plan& plan, const Context& context) {
  if (!plan.has_train() && !plan.has_predict() && !plan.has_evaluate() && !plan.has_report()) {
    return Status(Code::kPermissionDenied, "what is kept of its statement is no job's")
        .Hint("CANCEL JOB, and run the statement again");
  }
  RETURN_IF_ERROR(CheckFolder(plan.train(), context));
  for (const plan::Candidate& candidate : plan.train().contest().candidates()) {
    RETURN_IF_ERROR(CheckFolder(candidate.plan(), context));
  }
  return OkStatus();
}

// Waits until the job's process has become its runner.
Status AwaitRunner(JobListener& listener, const std::stop_token& stop) {
  for (;;) {
    const JobListener::News news =
        listener.Next(stop, std::chrono::steady_clock::time_point::max());
    if (std::holds_alternative<JobListener::Begun>(news)) {
      return OkStatus();
    }
    if (const auto* ended = std::get_if<JobListener::Ended>(&news)) {
      const Status why = ErrorOfAnswer(ended->answer);
      return why.ok() ? Internal("the process that was to continue it did nothing") : why;
    }
    if (std::holds_alternative<JobListener::Gone>(news)) {
      return Unavailable("the process that was to continue it has ended");
    }
    if (std::holds_alternative<JobListener::Nothing>(news)) {
      return Cancelled("cancelled while a process was started for the job");
    }
  }
}

Result<std::unique_ptr<JobListener>> Start(const WaitingJob& waiting, Context& context) {
  JobConfig config;
  if (!config.ParseFromString(waiting.statement)) {
    return Internal("what is kept of its statement is damaged");
  }
  RETURN_IF_ERROR(CheckKept(config.plan(), context));
  config.set_owner(waiting.job.owner);
  config.set_source_url(context.source.url());
  config.set_catalog_url(context.catalog.url());
  config.mutable_row()->set_job(waiting.job.id);
  config.mutable_row()->set_lost(true);
  JobSecrets secrets;
  secrets.set_source(context.source.secret());
  secrets.set_catalog(context.catalog.secret());
  // This process is the job's runner until the new one is, so that other processes do not start
  // one, too.
  const catalog::JobRunner here = ThisProcess();
  catalog::JobStore& jobs = context.catalog.jobs();
  ASSIGN_OR_RETURN(const bool taken, jobs.TakeOver(waiting.job.id, waiting.job.runner, here));
  if (!taken) {
    return Status(Code::kAborted,
                  fmt::format("another process already continues job {}", waiting.job.id));
  }
  Result<StartedJob> started =
      context.cluster->StartJob(context, std::move(config), std::move(secrets));
  Status status = started.status();
  if (status.ok()) {
    status = AwaitRunner(*started->listener, context.stop);
  }
  if (!status.ok()) {  // the job waits again
    status.Add(jobs.TakeOver(waiting.job.id, here, waiting.job.runner).status());
    return status;
  }
  return std::move(started->listener);
}

}  // namespace

Result<std::vector<TakenOver>> TakeOverLostJobs(Context& context) {
  if (!context.acts_as_login) {
    return std::vector<TakenOver>();
  }
  const auto jobs = context.catalog.JobsFor(context.stop);
  ASSIGN_OR_RETURN(const std::vector<WaitingJob> waiting, FindWaitingJobs(*jobs));
  std::vector<TakenOver> taken;
  for (const WaitingJob& one : waiting) {
    if (context.cluster == nullptr || one.job.owner != context.catalog.principal().role) {
      continue;
    }
    taken.push_back({one.job.id, Start(one, context)});
    const Status status = taken.back().listener.status();
    if (!status.ok()) {
      log::Warn("job={} cannot be started again: {}", one.job.id, status.ToString());
    }
  }
  return taken;
}

}  // namespace sluice::executor
