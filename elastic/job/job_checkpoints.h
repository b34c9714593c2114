#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/master/master.h"
#include "elastic/master/master_host.h"
#include "elastic/storage/checkpoint.h"

namespace sluice::catalog {
class DatasetSpec;
}

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

// The checkpoints of one job: where they are written, and from which one it resumes. One object per
// directory at a time. Not thread-safe.
class JobCheckpoints {
 public:
  // The checkpoints that `plan` asks for; nullopt: it asks for none. Finds the newest complete
  // checkpoint; `damaged` lists damaged ones. Errors are placed at engine.checkpoint_dir: those of
  // CheckpointDirectory::Open and Newest, and FailedPrecondition if the checkpoint belongs to
  // another statement, or to a model that has changed since.
  static Result<std::optional<JobCheckpoints>> Open(const plan::TrainPlan& plan);

  // The plan to run: that of the checkpoint, if there is one, with the processes that `plan` asks
  // for, so that newer statistics have no effect.
  plan::TrainPlan PlanToRun(const plan::TrainPlan& plan) const;
  // The snapshot to train on, with its rows counted, cut as before the checkpoint.
  // FailedPrecondition: the checkpoint was trained on other data.
  Result<catalog::DatasetSpec> DataToRun(const catalog::DatasetSpec& dataset,
                                         const catalog::DatasetSpec* validation);

  const std::optional<CheckpointDirectory::Found>& restore() const { return restore_; }
  const std::vector<std::string>& damaged() const { return damaged_; }
  const CheckpointDirectory& directory() const { return directory_; }
  int64_t every_steps() const { return every_steps_; }

  // A manifest that identifies the job; the caller fills in the cut.
  CheckpointManifest Manifest() const;
  // From now on the job resumes from the newest one; from the beginning if there is none. For a job
  // that has lost its parameters. False: it is the one from which it resumed last time.
  Result<bool> GoBack();
  // "step 1200", "the beginning": where it resumes.
  std::string Beginning() const;
  // To be called before the model of job `job` is stored. If all processes are killed before
  // Finish, the next Open finds this number (committing_job) and looks for a model of that job in
  // the catalog.
  Status SetCommittingJob(int64_t job) const { return directory_.SetCommittingJob(job); }
  const std::optional<int64_t>& committing_job() const { return committing_job_; }
  // The model is in the catalog: removes the checkpoints.
  Status Finish() { return directory_.Clear(); }

 private:
  JobCheckpoints(CheckpointDirectory directory, int64_t every_steps)
      : directory_(std::move(directory)), every_steps_(every_steps) {}

  CheckpointDirectory directory_;
  int64_t every_steps_ = 0;
  std::optional<CheckpointDirectory::Found> restore_;
  std::vector<std::string> damaged_;
  std::optional<int64_t> committing_job_;
  Span place_;
  CheckpointManifest about_;
};

// All-reduce: requests that the parameters be written to a draft; then makes it a checkpoint. A
// failure to write does not end the job.
void OfferDraft(const JobCheckpoints& checkpoints, MasterHost& host);
void CommitWorldCut(const JobCheckpoints& checkpoints, MasterHost& host);

// A new master, or one made from the checkpoint.
Result<std::unique_ptr<Master>> MakeMaster(const Master::Options& options,
                                           const JobCheckpoints* checkpoints, TimePoint now);

}  // namespace sluice::elastic
