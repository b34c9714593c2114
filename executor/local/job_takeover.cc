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
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// The owner of a row can change it, and must not make a gateway use other folders.
Status CheckFolder(const plan::Plan& plan, const Context& context) {
  if (!context.checkpoint_root.has_value() || !plan.has_train() ||
      !plan.train().has_checkpoints()) {
    return OkStatus();
  }
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path root = fs::weakly_canonical(fs::absolute(*context.checkpoint_root), error);
  const std::string& folder = plan.train().checkpoints().directory();
  const fs::path within = fs::weakly_canonical(folder, error).lexically_relative(root);
  const bool inside = !error && !within.empty() && within != "." && *within.begin() != "..";
  return inside && !context.checkpoint_root->empty()
             ? OkStatus()
             : Status(Code::kPermissionDenied,
                      fmt::format("its checkpoints in '{}' are not of this gateway", folder))
                   .Hint("CANCEL JOB, and run the statement again");
}

Result<std::unique_ptr<JobListener>> Start(const WaitingJob& waiting, Context& context) {
  JobConfig config;
  if (!config.ParseFromString(waiting.statement)) {
    return Internal("what is kept of its statement is damaged");
  }
  RETURN_IF_ERROR(CheckFolder(config.plan(), context));
  config.set_owner(waiting.job.owner);
  config.set_source_url(context.source.url());
  config.set_catalog_url(context.catalog.url());
  JobConfig::Takeover* takeover = config.mutable_takeover();
  takeover->set_job(waiting.job.id);
  takeover->set_place(waiting.job.runner.place);
  takeover->set_pid(waiting.job.runner.pid);
  takeover->set_started(waiting.job.runner.started);
  JobSecrets secrets;
  secrets.set_source(context.source.secret());
  secrets.set_catalog(context.catalog.secret());
  ASSIGN_OR_RETURN(std::unique_ptr<JobListener> listener,
                   context.cluster->StartJob(context, std::move(config), secrets));
  // Wait until the row names its new runner, so that other processes do not start one, too.
  for (;;) {
    const JobListener::News news =
        listener->Next(context.stop, std::chrono::steady_clock::time_point::max());
    if (std::holds_alternative<JobListener::Begun>(news)) {
      return listener;
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
