#include <fmt/core.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "base/log.h"
#include "catalog/embedded_memory.h"

namespace sluice::catalog {
namespace {

constexpr size_t kSmallCell = size_t{64} << 10;
// As a batch's text or a message's, in hexadecimal digits, and while a buffer grows.
constexpr size_t kCopies = 5;
// Before each piece of SQLite's memory stands whose it is; as long as the strictest alignment.
constexpr int kOwnersBytes = alignof(std::max_align_t);

thread_local MemoryAccount* charged = nullptr;
thread_local EndsAllocations* ends = nullptr;
sqlite3_mem_methods usual;  // what SQLite comes with; written once, before the first allocation

char* BeginOf(void* memory) {
  return static_cast<char*>(memory) - kOwnersBytes;
}

MemoryAccount* AccountOf(char* begin) {
  MemoryAccount* account = nullptr;
  std::memcpy(&account, begin, sizeof(account));
  return account;
}

void* Allocate(int bytes) {
  if (bytes > std::numeric_limits<int>::max() - kOwnersBytes || EndsAllocations::Refuse()) {
    return nullptr;
  }
  auto* begin = static_cast<char*>(usual.xMalloc(bytes + kOwnersBytes));
  if (begin == nullptr) {
    return nullptr;
  }
  std::memcpy(begin, &charged, sizeof(charged));
  if (charged != nullptr) {
    charged->Charge(usual.xSize(begin));
  }
  return begin + kOwnersBytes;
}

void Release(void* memory) {
  if (memory == nullptr) {
    return;
  }
  char* begin = BeginOf(memory);
  MemoryAccount* const account = AccountOf(begin);
  const int size = usual.xSize(begin);
  usual.xFree(begin);
  if (account != nullptr) {
    account->Refund(size);
  }
}

void* Reallocate(void* memory, int bytes) {
  if (bytes > std::numeric_limits<int>::max() - kOwnersBytes || EndsAllocations::Refuse()) {
    return nullptr;
  }
  char* const begin = BeginOf(memory);
  MemoryAccount* const account = AccountOf(begin);
  const int size = usual.xSize(begin);
  auto* moved = static_cast<char*>(usual.xRealloc(begin, bytes + kOwnersBytes));
  if (moved == nullptr) {
    return nullptr;
  }
  if (account != nullptr) {
    account->Charge(usual.xSize(moved));
    account->Refund(size);
  }
  return moved + kOwnersBytes;
}

int SizeOf(void* memory) {
  return memory == nullptr ? 0 : usual.xSize(BeginOf(memory)) - kOwnersBytes;
}

int RoundUp(int bytes) {
  return usual.xRoundup(bytes);
}

int Begin(void* /*unused*/) {
  return usual.xInit(usual.pAppData);
}

void End(void* /*unused*/) {
  usual.xShutdown(usual.pAppData);
}

bool KeepAccounts() {
  sqlite3_mem_methods counting = {Allocate, Release, Reallocate, SizeOf,
                                  RoundUp,  Begin,   End,        nullptr};
  sqlite3_mem_methods found = {};
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &found) != SQLITE_OK) {
    return false;
  }
  usual = found;
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &counting) == SQLITE_OK;
}

}  // namespace

void LimitEmbeddedMemory(int64_t bytes) {
  static const bool kept = KeepAccounts();
  if (!kept) {
    log::Warn("SQLite was in use before its memory was limited: it is not counted by user");
  }
  sqlite3_hard_heap_limit64(bytes);
}

std::shared_ptr<MemoryAccount> MemoryAccount::Open() {
  return {std::unique_ptr<MemoryAccount>(new MemoryAccount()).release(),
          [](MemoryAccount* account) { account->Leave(); }};
}

void MemoryAccount::Charge(int64_t bytes) {
  bytes_ += bytes;
  ++holders_;
}

void MemoryAccount::Refund(int64_t bytes) {
  bytes_ -= bytes;
  Leave();
}

void MemoryAccount::Leave() {
  if (--holders_ == 0) {
    std::default_delete<MemoryAccount>()(this);
  }
}

ChargesMemory::ChargesMemory(MemoryAccount* account) : before_(charged) {
  charged = account;
}

ChargesMemory::~ChargesMemory() {
  charged = before_;
}

EndsAllocations::EndsAllocations(std::function<bool()> stopped)
    : stopped_(std::move(stopped)), left_(std::numeric_limits<int64_t>::max()), before_(ends) {
  ends = this;
}

EndsAllocations::EndsAllocations(int64_t most) : left_(most), before_(ends) {
  ends = this;
}

EndsAllocations::~EndsAllocations() {
  ends = before_;
}

bool EndsAllocations::Refuse() {
  bool refused = false;
  for (EndsAllocations* each = ends; each != nullptr; each = each->before_) {
    each->left_ -= each->left_ > 0 ? 1 : 0;
    each->ended_ =
        each->ended_ || each->left_ == 0 || (each->stopped_ != nullptr && each->stopped_());
    refused = refused || each->ended_;
  }
  return refused;
}

Status CheckHeldMemory(const MemoryAccount& account, size_t transient) {
  const int64_t limit = sqlite3_hard_heap_limit64(-1);
  const int64_t held = account.bytes();
  const int64_t left = limit - sqlite3_memory_used() + static_cast<int64_t>(transient);
  if (limit == 0 || held <= left) {
    return OkStatus();
  }
  return ResourceExhausted(
             fmt::format(
                 "the sessions of this user hold {} bytes of memory, more than the {} that are "
                 "left for all others",
                 held, std::max<int64_t>(left, 0)))
      .SqlState("53200")
      .Hint("CLOSE cursors that are not used any more, or fetch fewer or smaller values at once");
}

void CellCopies::Free::operator()(void* memory) const {
  sqlite3_free(memory);
}

void CellCopies::Clear() {
  counted_.clear();
  bytes_ = 0;
}

Status CellCopies::Add(size_t bytes) {
  if (bytes < kSmallCell || sqlite3_hard_heap_limit64(-1) == 0) {
    return OkStatus();
  }
  const ChargesMemory none(nullptr);
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
    bytes_ += bytes;
  }
  return OkStatus();
}

}  // namespace sluice::catalog
