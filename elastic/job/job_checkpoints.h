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

// The checkpoints of one job: where they are written, and which one it goes on from. One for each
// directory at a time. Not thread-safe.
class JobCheckpoints {
 public:
  // What `plan` asks for; nullopt: it asks for none. Finds the newest checkpoint that is whole; the
  // damaged ones are told in `damaged`. Errors carry the place of engine.checkpoint_dir: of
  // CheckpointDirectory::Open and Newest, and FailedPrecondition when the checkpoint is another
  // statement's, or of a model that has become another one.
  static Result<std::optional<JobCheckpoints>> Open(const plan::TrainPlan& plan);

  // The plan to run: where there is a checkpoint, the one that it was made by, with the processes
  // that `plan` asks for. Statistics that were gathered again meanwhile so change nothing.
  plan::TrainPlan PlanToRun(const plan::TrainPlan& plan) const;
  // The snapshot to train on, its rows counted, cut as it was before the checkpoint.
  // FailedPrecondition: the checkpoint was trained on other data.
  Result<catalog::DatasetSpec> DataToRun(const catalog::DatasetSpec& dataset,
                                         const catalog::DatasetSpec* validation);

  const std::optional<CheckpointDirectory::Found>& restore() const { return restore_; }
  const std::vector<std::string>& damaged() const { return damaged_; }
  const CheckpointDirectory& directory() const { return directory_; }
  int64_t every_steps() const { return every_steps_; }

  // A manifest that says whose it is; the cut is the caller's.
  CheckpointManifest Manifest() const;
  // From now on the job goes on from the newest one; from its beginning where there is none. For a
  // job that has lost its parameters. False: from where it went on the last time.
  Result<bool> GoBack();
  // "step 1200", "the beginning": what it goes on from.
  std::string Beginning() const;
  // Before the model of job `job` is stored. Should all be killed before Finish, whoever opens them
  // next finds the number in `ending`, and a model of it in the catalog, or not.
  Status SetCommittingJob(int64_t job) const { return directory_.SetCommittingJob(job); }
  const std::optional<int64_t>& committing_job() const { return committing_job_; }
  // The model is in the catalog: nobody needs them any more.
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

// All-reduce: asks for the parameters in a draft; then makes it a checkpoint. One that cannot be
// written does not end the job.
void OfferDraft(const JobCheckpoints& checkpoints, MasterHost& host);
void CommitWorldCut(const JobCheckpoints& checkpoints, MasterHost& host);

// A new master, or the one of the checkpoint.
Result<std::unique_ptr<Master>> MakeMaster(const Master::Options& options,
                                           const JobCheckpoints* checkpoints, TimePoint now);

}  // namespace sluice::elastic
