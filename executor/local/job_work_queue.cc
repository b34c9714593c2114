#include "executor/local/job_work_queue.h"

#include <utility>

namespace sluice::executor {
namespace {

// More than a second's worth of progress and notices.
constexpr size_t kMaxOffers = 100;

}  // namespace

void JobWorkQueue::Put(Work work) {
  Add({std::move(work), nullptr});
}

void JobWorkQueue::Offer(Work work) {
  const MutexLock lock(mutex_);
  if (!closed_ && entries_.size() < kMaxOffers) {
    entries_.push_back({std::move(work), nullptr});
    changed_.notify_all();
  }
}

Status JobWorkQueue::Ask(Work work) {
  const auto answer = std::make_shared<std::promise<Status>>();
  std::future<Status> answered = answer->get_future();
  Add({std::move(work), answer});
  return answered.get();
}

bool JobWorkQueue::DoNext(const std::stop_token& stop,
                          std::chrono::steady_clock::time_point until) {
  Entry entry;
  {
    MutexLock lock(mutex_);
    const auto any = [this]() REQUIRES(mutex_) { return !entries_.empty(); };
    changed_.wait_until(lock.native(), stop, until, any);
    if (entries_.empty()) {
      return false;
    }
    entry = std::move(entries_.front());
    entries_.pop_front();
  }
  Status status = entry.work();
  if (entry.answer != nullptr) {
    entry.answer->set_value(std::move(status));
  }
  return true;
}

void JobWorkQueue::Close() {
  std::deque<Entry> left;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    left.swap(entries_);
  }
  for (const Entry& entry : left) {
    Refuse(entry);
  }
}

void JobWorkQueue::Refuse(const Entry& entry) {
  if (entry.answer != nullptr) {
    entry.answer->set_value(Unavailable("the job is over"));
  }
}

void JobWorkQueue::Add(Entry entry) {
  {
    const MutexLock lock(mutex_);
    if (!closed_) {
      entries_.push_back(std::move(entry));
      changed_.notify_all();
      return;
    }
  }
  Refuse(entry);
}

}  // namespace sluice::executor
