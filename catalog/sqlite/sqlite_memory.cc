#include <fmt/core.h>
#include <sqlite3.h>

#include "catalog/embedded_memory.h"

namespace sluice::catalog {
namespace {

constexpr size_t kSmallCell = size_t{64} << 10;
// As a batch's text or a message's, in hexadecimal digits, and while a buffer grows.
constexpr size_t kCopies = 5;

}  // namespace

void LimitEmbeddedMemory(int64_t bytes) {
  sqlite3_hard_heap_limit64(bytes);
}

void CellCopies::Free::operator()(void* memory) const {
  sqlite3_free(memory);
}

Status CellCopies::Add(size_t bytes) {
  if (bytes < kSmallCell || sqlite3_hard_heap_limit64(-1) == 0) {
    return OkStatus();
  }
  for (size_t copy = 0; copy < kCopies; ++copy) {
    // Never touched, so it takes no memory, and counts.
    void* memory = sqlite3_malloc64(bytes);
    if (memory == nullptr) {
      Clear();
      return ResourceExhausted(
                 fmt::format("no memory to send {} bytes: SQLite's part of the gateway's memory "
                             "(--memory-limit) is {} bytes",
                             bytes, sqlite3_hard_heap_limit64(-1)))
          .SqlState("53200")
          .Hint("select fewer or smaller values at once, such as substr(x, 1, 1000000)");
    }
    counted_.emplace_back(memory);
  }
  return OkStatus();
}

}  // namespace sluice::catalog
