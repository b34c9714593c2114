#include "executor/pods/master_journal.h"

#include <utility>

#include "catalog/job_store.h"
#include "executor/pods/master_exit.h"
#include "executor/pods/master_lease.h"

namespace sluice::executor {

MasterJournal::MasterJournal(catalog::JobStore& jobs, int64_t job, MasterLease& lease,
                             MasterExit& exit, std::stop_token stop)
    : journal_(jobs, job), lease_(lease), exit_(exit), stop_(std::move(stop)) {}

Result<elastic::JournalTerm> MasterJournal::BeginTerm() {
  ASSIGN_OR_RETURN(const elastic::JournalTerm term, journal_.BeginTerm());
  if (lease_.IsFollowed(stop_)) {
    exit_.LeaveToNext(MasterLease::kFollowed);
  }
  return term;
}

Status MasterJournal::Append(elastic::JournalTerm term, const std::vector<std::string>& entries,
                             bool anew) {
  Status written = journal_.Append(term, entries, anew);
  if (!catalog::IsTermOver(written)) {
    return written;
  }
  if (exit_.told() || lease_.IsFollowed(stop_)) {
    exit_.LeaveToNext(MasterLease::kFollowed);
  }
  // Nobody follows the newest master while it runs: there is nothing to wait for.
  MasterExit::Leave("its journal refuses it: the job goes on with the next master");
}

}  // namespace sluice::executor
