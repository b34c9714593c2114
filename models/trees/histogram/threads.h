#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace sluice::models::histogram {

// Threads that share the tasks of one loop after the other, the caller's among them. Not
// thread-safe: one loop at a time.
class Threads {
 public:
  explicit Threads(size_t count);  // 0: as many as processors
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  size_t count() const { return threads_.size() + 1; }
  // Calls task(i, thread) for each i < tasks, in any order; thread < count(). Returns when all are
  // done; throws what one of them has thrown.
  void Run(size_t tasks, const std::function<void(size_t, size_t)>& task) EXCLUDES(mutex_);
  // task(begin, end, thread) for pieces of [0, size) of at most `piece`.
  void RunPieces(size_t size, size_t piece, const std::function<void(size_t, size_t, size_t)>& task)
      EXCLUDES(mutex_);

 private:
  void Work(size_t thread, const std::stop_token& stop) EXCLUDES(mutex_);
  // Runs tasks of the present loop until none is left to start.
  void TakeTasks(size_t thread) EXCLUDES(mutex_);

  Mutex mutex_;
  std::condition_variable_any changed_;
  const std::function<void(size_t, size_t)>* task_ GUARDED_BY(mutex_) = nullptr;
  size_t tasks_ GUARDED_BY(mutex_) = 0;
  size_t next_ GUARDED_BY(mutex_) = 0;
  size_t running_ GUARDED_BY(mutex_) = 0;
  std::exception_ptr thrown_ GUARDED_BY(mutex_);
  std::vector<std::jthread> threads_;  // last: they use the members above
};

}  // namespace sluice::models::histogram
