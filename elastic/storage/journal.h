#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "base/status.h"

namespace sluice::elastic {

// A writer of a journal, from 1: each has a higher number than those before. Not the master's Term:
// a journal that is used again has had other writers.
struct JournalTermKind {
  using Number = int64_t;
  static constexpr Number kFirst = 1;
  static constexpr IdUse kUse = IdUse::kSequence;
};
using JournalTerm = Id<JournalTermKind>;
inline constexpr JournalTerm kNoJournalTerm{0};

// Stores the transitions of a job's master so that they outlive it: rows of the jobs database. One
// entry is one transition, or a whole state that makes earlier entries superfluous. Entries are
// appended in groups; after a crash all appended groups are there, and of the last one perhaps only
// a beginning. Implementations are thread-safe.
class JournalStore {
 public:
  virtual ~JournalStore() = default;
  // Begins a term above all earlier ones. Appends of older terms are refused from now on.
  virtual Result<JournalTerm> BeginTerm() = 0;
  // `anew`: the first entry makes all earlier ones superfluous; they are removed in the same step.
  // Aborted (catalog::IsTermOver): another master has begun a later term; this one must stop. An
  // append that failed in any other way may be repeated unchanged: it is stored once, whether or
  // not the first attempt succeeded.
  virtual Status Append(JournalTerm term, const std::vector<std::string>& entries, bool anew) = 0;
  // In the order of the appends.
  virtual Result<std::vector<std::string>> ReadAll() = 0;
};

}  // namespace sluice::elastic
