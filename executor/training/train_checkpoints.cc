#include "executor/training/train_checkpoints.h"

#include <fmt/core.h>

#include "catalog/model_store.h"
#include "executor/executor.h"
#include "executor/jobs/job_record.h"
#include "executor/training/store_model.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

void ReportDamaged(const std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job) {
  if (checkpoints.has_value()) {
    for (const std::string& damaged : checkpoints->damaged()) {
      job.Event("checkpoint_damaged", damaged);
    }
  }
}

void ReportCommittingJob(const std::optional<elastic::JobCheckpoints>& checkpoints,
                         JobRecord& job) {
  const Status told =
      checkpoints.has_value() ? checkpoints->SetCommittingJob(job.id()) : OkStatus();
  if (!told.ok()) {  // only the model matters; the next run may repeat some of its steps
    job.Event("checkpoint_failed", told.message());
  }
}

void FinishCheckpoints(std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job) {
  const Status finished = checkpoints.has_value() ? checkpoints->Finish() : OkStatus();
  if (!finished.ok()) {
    job.Event("checkpoint_failed", finished.message());
  }
}

Result<std::optional<elastic::JobCheckpoints>> OpenCheckpoints(const plan::TrainPlan& plan,
                                                               catalog::ModelStore& models,
                                                               ResultSink& sink) {
  ASSIGN_OR_RETURN(std::optional<elastic::JobCheckpoints> checkpoints,
                   elastic::JobCheckpoints::Open(plan));
  if (!checkpoints.has_value() || !checkpoints->restore().has_value()) {
    return checkpoints;
  }
  if (checkpoints->committing_job().has_value()) {
    ASSIGN_OR_RETURN(const auto version, FindStored(models, plan.into_schema(), plan.into_name(),
                                                    *checkpoints->committing_job()));
    if (version.has_value()) {  // the process was lost before they were removed
      sink.Notice(
          fmt::format("the checkpoints in '{}' are left over from job {}, which made "
                      "version {}: they are removed, and the training begins anew",
                      checkpoints->directory().path(), version->job, version->version));
      RETURN_IF_ERROR(checkpoints->Finish());
      checkpoints.reset();  // one opener at a time
      return elastic::JobCheckpoints::Open(plan);
    }
  }
  for (const std::string& damaged : checkpoints->damaged()) {
    sink.Notice(fmt::format("a damaged checkpoint is passed over: {}", damaged));
  }
  const elastic::CheckpointDirectory::Found& found = *checkpoints->restore();
  const bool trees = found.manifest.epoch == elastic::kNoEpoch;
  const std::string epoch = trees ? "" : fmt::format(" in epoch {}", found.manifest.epoch);
  sink.Notice(fmt::format("the training goes on from step {}{}: {}", found.manifest.steps, epoch,
                          found.path));
  return checkpoints;
}

}  // namespace sluice::executor
