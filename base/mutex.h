#pragma once

#include <condition_variable>
#include <mutex>

// Thread-safety annotations, checked by clang (-Wthread-safety) and ignored by other compilers.
#if defined(__clang__)
#define SLUICE_ANNOTATION(x) __attribute__((x))
#else
#define SLUICE_ANNOTATION(x)
#endif
// gRPC's headers may define absl's macros of the same names and meaning.
#undef GUARDED_BY
#define CAPABILITY(x) SLUICE_ANNOTATION(capability(x))
#define SCOPED_CAPABILITY SLUICE_ANNOTATION(scoped_lockable)
#define GUARDED_BY(x) SLUICE_ANNOTATION(guarded_by(x))
#define REQUIRES(...) SLUICE_ANNOTATION(requires_capability(__VA_ARGS__))
#define ACQUIRE(...) SLUICE_ANNOTATION(acquire_capability(__VA_ARGS__))
#define RELEASE(...) SLUICE_ANNOTATION(release_capability(__VA_ARGS__))
#define EXCLUDES(...) SLUICE_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace sluice {

// std::mutex with annotations (libstdc++'s own is not annotated).
class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // For std::condition_variable::wait and friends; the mutex is held again on return.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace sluice
