#include "elastic/job/job_journal.h"

#include "catalog/job_store.h"

namespace sluice::elastic {

Result<int64_t> JobJournal::BeginTerm() {
  const MutexLock lock(mutex_);
  last_.reset();
  return store_.BeginTerm(job_);
}

Status JobJournal::Append(int64_t term, const std::vector<std::string>& entries, bool anew) {
  const MutexLock lock(mutex_);
  return store_.AppendJournal(job_, term, entries, anew, &last_);
}

Result<std::vector<std::string>> JobJournal::ReadAll() {
  return store_.Journal(job_);
}

}  // namespace sluice::elastic
