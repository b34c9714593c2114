#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"

namespace sluice::catalog {

// Limits what SQLite takes in this process, all connections together; a value of a statement gets
// at most a quarter of that (54000), and a statement that needs more fails (53200). Call before a
// connection is opened.
void LimitEmbeddedMemory(int64_t bytes);

// The copies of large cells outside of SQLite, on their way to a client, counted as SQLite's own,
// so that its limit holds for them too, of all clients together. Not thread-safe.
class CellCopies {
 public:
  // A cell, or several, of so many bytes will be copied; small ones are not counted. 53200: there
  // is no room for the copies.
  Status Add(size_t bytes);
  // They are gone.
  void Clear() { counted_.clear(); }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::vector<std::unique_ptr<void, Free>> counted_;
};

}  // namespace sluice::catalog
