#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "elastic/master/progress.h"
#include "elastic/master/train_outcome.h"
#include "elastic/rpc/job_endpoint.h"

namespace sluice::catalog {
class DataSource;
class Dataset;
class DatasetSpec;
}  // namespace sluice::catalog

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

class Fleet;
class JobCheckpoints;
class JobHandle;
class JournalStore;

// Trains a network in this process: master, one worker and the parameter shard as direct calls.
// `checkpoints`: written while it runs, and where it goes on from; null: none.
Result<TrainOutcome> TrainInProcess(const plan::TrainPlan& plan, catalog::DataSource& source,
                                    const catalog::DatasetSpec& dataset,
                                    const catalog::DatasetSpec* validation,
                                    const models::NetworkWeights* base,
                                    const ProgressCallback& progress, const EventCallback& events,
                                    std::stop_token stop, JobCheckpoints* checkpoints = nullptr);

// What a job needs to outlive its masters.
struct Succession {
  // Holds what the masters before this one knew; nullptr: a job ends with its master.
  JournalStore* journal = nullptr;
  // Stores the model, while the processes that have its weights live: if this master dies
  // meanwhile, the next one still can. Called once, when the journal says that training has
  // succeeded.
  std::function<Status(const TrainOutcome&)> commit;
  // A master before this one has done so: nothing is started, and the outcome, without weights, is
  // what the journal says.
  bool committed = false;
};

// Runs the job's master in this process and its workers and parameter servers on `fleet`.
// Returns when every row has been trained `epochs` times by the ledger, or with the first error.
// `endpoint` may be just the job's name.
// `handle` works while it runs. With `checkpoints`, a job that has lost its parameters goes back to
// the newest one, with all its processes, and on from there.
Result<TrainOutcome> TrainOnFleet(const plan::TrainPlan& plan, catalog::DataSource& source,
                                  Fleet& fleet, const JobEndpoint& endpoint,
                                  const catalog::DatasetSpec& dataset,
                                  const catalog::DatasetSpec* validation,
                                  const models::NetworkWeights* base,
                                  const ProgressCallback& progress, const EventCallback& events,
                                  std::stop_token stop, JobHandle* handle = nullptr,
                                  const Succession& succession = {},
                                  JobCheckpoints* checkpoints = nullptr);

}  // namespace sluice::elastic
