#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/job/job_journal.h"
#include "executor/contest/candidate_trial.h"

namespace sluice::catalog {
class JobStore;
}

namespace sluice::executor {

// The trainings of a search that are over, in records of the job, so that its next master goes on
// where this one was lost. The trainings are numbered from 0, in a way that each master repeats.
class SearchLedger {
 public:
  // `rows`: the fingerprint of the dataset. Records made of other rows are ignored.
  SearchLedger(catalog::JobStore& jobs, int64_t job, std::string rows)
      : jobs_(jobs), job_(job), rows_(std::move(rows)) {}

  // The training's result, without its weights; nullopt: it is not over.
  Result<std::optional<Trial>> Find(uint32_t training) const;
  Result<std::string> Weights(uint32_t training) const;
  // Records that a training is over. `best`: keeps its weights, too, in place of those kept before.
  Status Keep(uint32_t training, const Trial& trial, bool best);

 private:
  catalog::JobStore& jobs_;
  const int64_t job_;
  const std::string rows_;
  std::optional<uint32_t> kept_;  // whose weights are kept
};

// One training's part of the job's journal: entries of other trainings are passed over.
class SearchJournal final : public elastic::JournalStore {
 public:
  SearchJournal(elastic::JournalStore& whole, uint32_t training);
  Result<elastic::JournalTerm> BeginTerm() override { return whole_.BeginTerm(); }
  Status Append(elastic::JournalTerm term, const std::vector<std::string>& entries,
                bool anew) override;
  Result<std::vector<std::string>> ReadAll() override;

 private:
  elastic::JournalStore& whole_;
  const std::string mark_;  // before each entry
};

}  // namespace sluice::executor
