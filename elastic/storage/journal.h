#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/status.h"

namespace sluice::elastic {

// One who writes a journal, from 1: each has a higher one than those before. Not the master's Term:
// a journal that is used again has had other writers.
struct JournalTermKind {
  using Number = int64_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kSequence;
};
using JournalTerm = Id<JournalTermKind>;
inline constexpr JournalTerm kNoJournalTerm{0};

// Where the transitions of a job's master are kept beyond its life: rows of the jobs database. One
// entry is one transition, or a whole state that makes those before it superfluous. Entries are
// appended in groups; what was appended is there after a crash, but for the last group, of which a
// beginning may be there. Implementations are thread-safe.
class JournalStore {
 public:
  virtual ~JournalStore() = default;
  // Begins a term: one above all before it. Appends of older terms are refused from now on.
  virtual Result<JournalTerm> BeginTerm() = 0;
  // `anew`: the first entry makes all before it superfluous; they are removed with it.
  // Aborted: another master has begun a later term; this one must stop. An append that failed in
  // any other way may be called again as it was: it is there once, whatever became of the first.
  virtual Status Append(JournalTerm term, const std::vector<std::string>& entries, bool anew) = 0;
  // In the order in which they were appended.
  virtual Result<std::vector<std::string>> ReadAll() = 0;
};

}  // namespace sluice::elastic
