#pragma once

#include <functional>

#include "base/status.h"
#include "elastic/job/training_job.h"
#include "elastic/rpc/job_endpoint.h"

namespace sluice::elastic {

class Fleet;
class JournalStore;

// What a job needs to survive the loss of its master.
struct Succession {
  // The state of earlier masters; nullptr: the job ends with its master.
  JournalStore* journal = nullptr;
  // Stores the model while the processes that have its weights are still running, so that the next
  // master can if this one dies meanwhile. Called once, when the journal says that training has
  // succeeded.
  std::function<Status(const TrainOutcome&)> commit;
};

// Runs the job's master in this process and its workers and parameter servers on `fleet`. Returns
// when every row has been trained `epochs` times by the ledger, or with the first error. `endpoint`
// may be just the job's name. With checkpoints, a job that has lost its parameters returns to the
// newest one, with all its processes, and continues from there; without, it begins again on the
// same snapshot, once.
Result<TrainOutcome> TrainOnFleet(const TrainingJob& job, Fleet& fleet, const JobEndpoint& endpoint,
                                  const Succession& succession = {});

}  // namespace sluice::elastic
