#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/fleet_job.h"
#include "elastic/job/fleet_master_internal.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/training_job.h"
#include "elastic/rpc/job_endpoint.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// From the checkpoint, if there is one.
Result<Master> BeginJob(const TrainingJob& job, const Master::Options& options, TimePoint now) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Master> master, MakeMaster(options, job.checkpoints, now));
  return std::move(*master);
}

}  // namespace

std::vector<std::string> LivingWorkers(const JobEndpoint& endpoint) {
  std::vector<std::string> workers;
  for (const RunningProcess& process : endpoint.running) {
    if (process.role == Role::kWorker) {
      workers.push_back(process.name);
    }
  }
  return workers;
}

Result<Master> BeginOrTakeOver(const MasterOrigin& origin, Master::Options options,
                               JournalTerm* term) {
  const TimePoint now = SteadyClock().Now();
  JournalStore* const journal = origin.succession.journal;
  if (journal == nullptr) {
    return BeginJob(origin.job, options, now);
  }
  options.queue.journal = !options.passes;  // which begin again
  // From now on entries of an earlier master are refused.
  ASSIGN_OR_RETURN(*term, journal->BeginTerm());
  ASSIGN_OR_RETURN(const std::vector<std::string> entries, journal->ReadAll());
  if (entries.empty() || origin.anew) {
    return BeginJob(origin.job, options, now);  // nothing had been done, or it was lost
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<Master> master,
                   Master::TakeOver(options, origin.endpoint.term, entries,
                                    LivingWorkers(origin.endpoint), now));
  if (options.passes) {
    master->BeginPassesAgain(now);
  }
  return std::move(*master);
}

}  // namespace sluice::elastic
