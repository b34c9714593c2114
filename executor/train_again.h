#pragma once

#include "base/status.h"
#include "executor/train.h"

namespace sluice::catalog {
class JobStore;
}

namespace sluice::executor {

class JobRecord;

// A training whose snapshot went with its database's connection (a restart, a failover) has nothing
// to read any more. One with checkpoints goes on from the newest with a snapshot of its own; rows
// that are not the same any more end it then (40001).
bool MayGoOn(const plan::TrainPlan& plan, const JobRecord& job);
// Waits until the database answers, for engine.database_patience seconds, and forgets what the
// job's masters have written down: their processes are gone. False: it does not answer, or the
// job was cancelled, which `report` says then.
bool BackAgain(const plan::TrainPlan& plan, catalog::JobStore& jobs, JobRecord& job,
               Result<TrainReport>& report);

// The job's next master begins from the checkpoint, or from the beginning.
Status ForgetJournal(catalog::JobStore& jobs, int64_t job);

}  // namespace sluice::executor
