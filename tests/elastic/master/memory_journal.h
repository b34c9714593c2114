#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "elastic/storage/journal.h"

namespace sluice::elastic {

// A journal that ends with the test. Thread-safe.
class MemoryJournal final : public JournalStore {
 public:
  Result<JournalTerm> BeginTerm() override {
    const std::lock_guard lock(mutex_);
    return ++term_;
  }
  Status Append(JournalTerm term, const std::vector<std::string>& entries, bool anew) override {
    const std::lock_guard lock(mutex_);
    if (term != term_) {
      return Status(Code::kAborted, "another master has taken over");
    }
    if (anew) {
      entries_.clear();
    }
    entries_.insert(entries_.end(), entries.begin(), entries.end());
    return Status();
  }
  Result<std::vector<std::string>> ReadAll() override {
    const std::lock_guard lock(mutex_);
    return entries_;
  }
  // The state that a master has left.
  void Set(std::vector<std::string> entries) {
    const std::lock_guard lock(mutex_);
    entries_ = std::move(entries);
  }

 private:
  std::mutex mutex_;
  JournalTerm term_ = kNoJournalTerm;
  std::vector<std::string> entries_;
};

// Refuses every group once those before it cost so much, as when another master has begun.
class BreakingJournal final : public JournalStore {
 public:
  using Cost = std::function<int(const std::vector<std::string>& entries)>;
  // `cost`: of one group; by default 1.
  BreakingJournal(
      MemoryJournal& journal, int most, Cost cost = [](const auto& /*entries*/) { return 1; })
      : journal_(journal), left_(most), cost_(std::move(cost)) {}
  Result<JournalTerm> BeginTerm() override { return journal_.BeginTerm(); }
  Status Append(JournalTerm term, const std::vector<std::string>& entries, bool anew) override {
    if (left_ <= 0) {
      return Status(Code::kAborted, "another master has taken over");
    }
    left_ -= cost_(entries);
    return journal_.Append(term, entries, anew);
  }
  Result<std::vector<std::string>> ReadAll() override { return journal_.ReadAll(); }

 private:
  MemoryJournal& journal_;
  int left_;
  const Cost cost_;
};

}  // namespace sluice::elastic
