#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace sluice::catalog {

// A database's messages other than rows and errors (NOTICE, WARNING), until they are sent to the
// user; no more of them than a person reads. Thread-safe.
class NoticeLog {
 public:
  static constexpr size_t kMaxNotices = 100;
  static constexpr size_t kLongestNotice = 2'000;  // bytes
  // For a select that is read several times, on several connections, the same text counts once.
  enum class Repeated : int { kOnce = 1, kEach = 2 };

  explicit NoticeLog(Repeated repeated) : repeated_(repeated) {}

  void Add(std::string notice);
  // What was added since the last Take.
  std::vector<std::string> Take();
  // The same at the end; the last line says how many were left out, if any.
  std::vector<std::string> TakeLast();
  // Forgets everything: another statement begins.
  void Clear();

 private:
  const Repeated repeated_;
  Mutex mutex_;
  std::set<std::string> told_ GUARDED_BY(mutex_);
  std::vector<std::string> waiting_ GUARDED_BY(mutex_);
  size_t kept_ GUARDED_BY(mutex_) = 0;
  size_t left_out_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::catalog
