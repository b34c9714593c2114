#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "elastic/storage/journal.h"

namespace sluice::catalog {
class JobStore;
}

namespace sluice::elastic {

// The journal of one job, stored with its row in the jobs database.
class JobJournal final : public JournalStore {
 public:
  JobJournal(catalog::JobStore& store, int64_t job) : store_(store), job_(job) {}
  Result<JournalTerm> BeginTerm() override;
  Status Append(JournalTerm term, const std::vector<std::string>& entries, bool anew) override;
  Result<std::vector<std::string>> ReadAll() override;

 private:
  catalog::JobStore& store_;
  const int64_t job_;
  Mutex mutex_;
  std::optional<int64_t> last_
      GUARDED_BY(mutex_);  // where the journal ends, as far as this term knows
};

}  // namespace sluice::elastic
