#include "base/lasting_threads.h"

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <thread>

#include "base/mutex.h"

namespace sluice {
namespace {

constexpr size_t kThreads = 4;

class LastingThreads {
 public:
  void Run(const std::function<void()>& work) EXCLUDES(mutex_) {
    Call call{work};
    MutexLock lock(mutex_);
    // First, since it may throw: then nobody knows of the call.
    if (idle_ <= waiting_.size() && started_ < kThreads) {
      std::thread([this] { Serve(); }).detach();
      ++started_;
    }
    waiting_.push_back(&call);
    put_.notify_one();
    call.done.wait(lock.native(), [&call] { return call.is_done; });
    if (call.exception != nullptr) {
      std::rethrow_exception(call.exception);
    }
  }

  // Of a process that was forked from the one that started the threads.
  bool lacks_threads() const { return getpid() != process_; }

 private:
  struct Call {
    explicit Call(const std::function<void()>& what) : work(what) {}
    const std::function<void()>& work;
    std::condition_variable done = {};
    bool is_done = false;
    std::exception_ptr exception = nullptr;
  };

  [[noreturn]] void Serve() EXCLUDES(mutex_) {
    pthread_setname_np(pthread_self(), "lasting");
    MutexLock lock(mutex_);
    for (;;) {
      ++idle_;
      put_.wait(lock.native(), [this]() REQUIRES(mutex_) { return !waiting_.empty(); });
      --idle_;
      Call& call = *waiting_.front();
      waiting_.pop_front();
      lock.native().unlock();
      try {
        call.work();
      } catch (...) {
        call.exception = std::current_exception();
      }
      lock.native().lock();
      call.is_done = true;
      call.done.notify_one();  // with the lock: the call goes when its caller has it
    }
  }

  const pid_t process_ = getpid();
  Mutex mutex_;
  std::condition_variable put_;
  std::deque<Call*> waiting_ GUARDED_BY(mutex_);
  size_t started_ GUARDED_BY(mutex_) = 0;
  size_t idle_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

void OnLastingThread(const std::function<void()>& work) {
  static auto* const threads = new LastingThreads;  // which outlive everything
  if (threads->lacks_threads()) {
    work();
  } else {
    threads->Run(work);
  }
}

}  // namespace sluice
