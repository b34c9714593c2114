#pragma once

#include "base/status.h"

namespace sluice::catalog {
class JobStore;
}

namespace sluice::elastic {
class JournalStore;
}

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

class JobRecord;

// A training whose snapshot was lost with its database's connection (a restart, a failover) cannot
// read on. One with checkpoints continues from the newest, with a new snapshot; it ends with 40001
// if the rows have changed. One with engine.new_snapshot begins again.
bool MayResume(const plan::TrainPlan& plan, const JobRecord& job);
// What `ended` advises a user whose training may not.
Status AdviseOnSnapshot(Status ended, const JobRecord& job);
// Waits until the database answers, for engine.database_patience seconds, and forgets what the
// job's masters have recorded: their processes are gone. False: it does not answer, or the job was
// cancelled, as `ended` then says.
bool AwaitDatabase(const plan::TrainPlan& plan, catalog::JobStore& jobs, JobRecord& job,
                   Status* ended);

// The job's next master begins from the checkpoint, or from the beginning.
Status ForgetJournal(elastic::JournalStore& journal);

}  // namespace sluice::executor
