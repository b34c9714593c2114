#include "elastic/job/job_journal.h"

#include "catalog/job_store.h"

namespace sluice::elastic {

Result<JournalTerm> JobJournal::BeginTerm() {
  const MutexLock lock(mutex_);
  last_.reset();
  ASSIGN_OR_RETURN(const int64_t term, store_.BeginTerm(job_));
  return JournalTerm(term);
}

Status JobJournal::Append(JournalTerm term, const std::vector<std::string>& entries, bool anew) {
  const MutexLock lock(mutex_);
  return store_.AppendJournal(job_, term.value(), entries, anew, &last_);
}

Result<std::vector<std::string>> JobJournal::ReadAll() {
  return store_.Journal(job_);
}

}  // namespace sluice::elastic
