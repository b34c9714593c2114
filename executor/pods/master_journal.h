#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "elastic/job/job_journal.h"

namespace sluice::catalog {
class JobStore;
}

namespace sluice::executor {

class MasterExit;
class MasterLease;

// The journal of a job on pods, for one of its masters. A master that is paused may begin a term
// although it is no longer the newest, and the newest is then refused. Both leave the job to the
// next master, before they do anything else to it: neither records how it ends, or stops its pods.
// Thread-safe.
class MasterJournal final : public elastic::JournalStore {
 public:
  // `stop`: the job is cancelled; the API server is not waited for any longer.
  MasterJournal(catalog::JobStore& jobs, int64_t job, MasterLease& lease, MasterExit& exit,
                std::stop_token stop);

  // Does not return if there is a later master. One that is made from now on begins a later term.
  Result<elastic::JournalTerm> BeginTerm() override;
  // Does not return if another master has begun a later term.
  Status Append(elastic::JournalTerm term, const std::vector<std::string>& entries,
                bool anew) override;
  Result<std::vector<std::string>> ReadAll() override { return journal_.ReadAll(); }

 private:
  elastic::JobJournal journal_;
  MasterLease& lease_;
  MasterExit& exit_;
  const std::stop_token stop_;
};

}  // namespace sluice::executor
