#include "models/trees/histogram/threads.h"

#include <algorithm>
#include <utility>

namespace sluice::models::histogram {

Threads::Threads(size_t count) {
  count = count > 0 ? count : std::max(1U, std::thread::hardware_concurrency());
  for (size_t i = 1; i < count; ++i) {
    threads_.emplace_back([this, i](const std::stop_token& stop) { Work(i, stop); });
  }
}

Threads::~Threads() {
  for (std::jthread& thread : threads_) {
    thread.request_stop();
  }
}

void Threads::TakeTasks(size_t thread) {
  for (;;) {
    size_t taken = 0;
    const std::function<void(size_t, size_t)>* task = nullptr;
    {
      const MutexLock lock(mutex_);
      if (next_ == tasks_) {
        return;
      }
      taken = next_++;
      task = task_;
      ++running_;
    }
    std::exception_ptr thrown;
    try {
      (*task)(taken, thread);
    } catch (...) {
      thrown = std::current_exception();
    }
    const MutexLock lock(mutex_);
    --running_;
    if (thrown != nullptr) {
      thrown_ = std::move(thrown);
      next_ = tasks_;
    }
    if (next_ == tasks_ && running_ == 0) {
      changed_.notify_all();
    }
  }
}

void Threads::Work(size_t thread, const std::stop_token& stop) {
  for (;;) {
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), stop, [this]() REQUIRES(mutex_) { return next_ < tasks_; });
      if (stop.stop_requested()) {
        return;
      }
    }
    TakeTasks(thread);
  }
}

void Threads::Run(size_t tasks, const std::function<void(size_t, size_t)>& task) {
  if (threads_.empty() || tasks < 2) {
    for (size_t i = 0; i < tasks; ++i) {
      task(i, 0);
    }
    return;
  }
  {
    const MutexLock lock(mutex_);
    task_ = &task;
    tasks_ = tasks;
    next_ = 0;
    changed_.notify_all();
  }
  TakeTasks(0);
  MutexLock lock(mutex_);
  changed_.wait(lock.native(), [this]() REQUIRES(mutex_) { return running_ == 0; });
  if (thrown_ != nullptr) {
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
}

void Threads::RunPieces(size_t size, size_t piece,
                        const std::function<void(size_t, size_t, size_t)>& task) {
  Run((size + piece - 1) / piece,
      [&](size_t i, size_t thread) { task(i * piece, std::min(size, (i + 1) * piece), thread); });
}

}  // namespace sluice::models::histogram
