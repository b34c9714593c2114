#include "catalog/notice_log.h"

#include <fmt/core.h>

#include <utility>

#include "base/utf8.h"

namespace sluice::catalog {

void NoticeLog::Add(std::string notice) {
  if (notice.size() > kLongestNotice) {
    notice.resize(CutToBytes(notice, kLongestNotice).size());
    notice += " ...";
  }
  MutexLock lock(mutex_);
  if (told_.count(notice) > 0) {
    return;
  }
  if (kept_ == kMaxNotices) {
    ++left_out_;
    return;
  }
  ++kept_;
  if (repeated_ == Repeated::kOnce) {
    told_.insert(notice);
  }
  waiting_.push_back(std::move(notice));
}

std::vector<std::string> NoticeLog::Take() {
  MutexLock lock(mutex_);
  return std::exchange(waiting_, {});
}

std::vector<std::string> NoticeLog::TakeLast() {
  MutexLock lock(mutex_);
  std::vector<std::string> notices = std::exchange(waiting_, {});
  const size_t left_out = std::exchange(left_out_, 0);
  if (left_out > 0) {
    notices.push_back(
        fmt::format("NOTICE: {} more of the database's notices are not shown", left_out));
  }
  return notices;
}

void NoticeLog::Clear() {
  MutexLock lock(mutex_);
  told_.clear();
  waiting_.clear();
  kept_ = 0;
  left_out_ = 0;
}

}  // namespace sluice::catalog
