#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elastic/journal.h"

namespace sluice::catalog {
class JobStore;
}

namespace sluice::elastic {

// The journal of one job, beside its row in the jobs database.
class JobJournal final : public JournalStore {
 public:
  JobJournal(catalog::JobStore& store, int64_t job) : store_(store), job_(job) {}
  Result<int64_t> BeginTerm() override;
  Status Append(int64_t term, const std::vector<std::string>& entries, bool anew) override;
  Result<std::vector<std::string>> ReadAll() override;

 private:
  catalog::JobStore& store_;
  const int64_t job_;
};

}  // namespace sluice::elastic
