#include "base/work_queue.h"

#include <fmt/core.h>

#include <utility>

#include "base/guarded.h"

namespace sluice {

WorkQueue::WorkQueue(std::string name, size_t most_waiting,
                     std::function<void(const Status&)> on_error)
    : name_(std::move(name)),
      most_waiting_(most_waiting),
      on_error_(std::move(on_error)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

WorkQueue::~WorkQueue() {
  Stop();
}

Status WorkQueue::Put(Work work) {
  const MutexLock lock(mutex_);
  if (stopped_) {
    return Cancelled(fmt::format("no more {} are made", name_));
  }
  if (waiting_.size() >= most_waiting_) {
    return ResourceExhausted(fmt::format("{} {} wait to be made", waiting_.size(), name_));
  }
  waiting_.push_back(std::move(work));
  changed_.notify_one();
  return Status();
}

void WorkQueue::Stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
  }
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void WorkQueue::Run(const std::stop_token& stop) {
  for (;;) {
    Work work;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), stop, [this]() REQUIRES(mutex_) { return !waiting_.empty(); });
      if (stop.stop_requested()) {
        return;
      }
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const Status done = Guarded(name_, work);
    if (!done.ok()) {
      on_error_(done);
    }
  }
}

}  // namespace sluice
