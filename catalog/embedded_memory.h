#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"

namespace sluice::catalog {

// Limits what SQLite takes in this process, all connections together; a value of a statement gets
// at most a quarter of that (54000), and a statement that needs more fails (53200). Call before a
// connection is opened: later than that, accounts are not kept.
void LimitEmbeddedMemory(int64_t bytes);

// What SQLite has taken, and not given back, for somebody. Thread-safe.
class MemoryAccount {
 public:
  // It lasts as long as somebody has it, or memory is charged to it.
  static std::shared_ptr<MemoryAccount> Open();

  int64_t bytes() const { return bytes_; }
  // For SQLite's allocations.
  void Charge(int64_t bytes);
  void Refund(int64_t bytes);

 private:
  MemoryAccount() = default;
  void Leave();

  std::atomic<int64_t> bytes_ = 0;
  std::atomic<int64_t> holders_ = 1;
};

// While it lives, what SQLite takes on this thread is charged to an account; null: to none.
class ChargesMemory {
 public:
  explicit ChargesMemory(MemoryAccount* account);
  ~ChargesMemory();
  ChargesMemory(const ChargesMemory&) = delete;
  ChargesMemory& operator=(const ChargesMemory&) = delete;

 private:
  MemoryAccount* const before_;
};

// While one exists, SQLite is given no more memory on this thread as soon as the work is stopped,
// or after so many allocations: that ends (SQLITE_NOMEM) what asks nothing else while it works, as
// preparing a statement. Of several, each counts. Has no effect where accounts are not kept.
class EndsAllocations {
 public:
  // `stopped` is asked at each allocation.
  explicit EndsAllocations(std::function<bool()> stopped);
  explicit EndsAllocations(int64_t most);
  ~EndsAllocations();
  EndsAllocations(const EndsAllocations&) = delete;
  EndsAllocations& operator=(const EndsAllocations&) = delete;

  // Whether an allocation was refused.
  bool ended() const { return ended_; }
  int64_t left() const { return left_; }
  // For SQLite's allocations.
  static bool Refuse();

 private:
  const std::function<bool()> stopped_;  // null: only counts
  int64_t left_;
  bool ended_ = false;
  EndsAllocations* const before_;
};

// 53200: an account holds more than is left for all others, as it may while a statement runs, but
// not from one message of its client to the next. `transient`: bytes that are soon given back, and
// in no account.
Status CheckHeldMemory(const MemoryAccount& account, size_t transient);

// The copies of large cells outside of SQLite, on their way to a client, counted as SQLite's own,
// so that its limit holds for them too, of all clients together; in no account. Not thread-safe.
class CellCopies {
 public:
  // A cell, or several, of so many bytes will be copied; small ones are not counted. 53200: there
  // is no room for the copies.
  Status Add(size_t bytes);
  // They are gone.
  void Clear();
  size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::vector<std::unique_ptr<void, Free>> counted_;
  size_t bytes_ = 0;
};

}  // namespace sluice::catalog
