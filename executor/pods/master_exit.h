#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>

#include "base/mutex.h"

namespace sluice::executor {

// The exit of a master that was told to end. It exits at once, unless something that it holds would
// be lost with it. Thread-safe.
class MasterExit {
 public:
  // Then it exits whatever is lost: less than its pod's grace period (k8s::kMasterGraceSeconds).
  static constexpr double kLongestSeconds = 110;

  // Whether the process may exit now; called repeatedly.
  using MayExit = std::function<bool()>;
  // What has to be true before the exit, while this lives. Where the process is waiting for it,
  // its destructor does not return before the process may exit: what was built before it remains.
  class Condition {
   public:
    Condition(MasterExit& exit, MayExit may_exit);
    ~Condition();
    Condition(const Condition&) = delete;
    Condition& operator=(const Condition&) = delete;

   private:
    MasterExit& exit_;
  };

  // Asked before the exit: whether the API server says that the process's pod goes. Then the exit
  // code is 0, which of a pod that stays would mean that the job is over (KeptJob).
  void AskIfPodGoes(std::function<bool()> pod_goes) EXCLUDES(mutex_);
  // Returns when the process may exit.
  void Wait() EXCLUDES(mutex_);
  // Ends the process as soon as it may exit. `why`: a line for the pod's log.
  [[noreturn]] void LeaveToNext(const char* why) EXCLUDES(mutex_);
  // Ends the process at once, with kEvicted: for a master that nobody follows before that.
  [[noreturn]] static void Leave(const char* why);
  // The process has been told to end: it begins nothing more.
  bool told() const { return told_; }

  static constexpr int kEvicted = 143;  // as by SIGTERM

 private:
  Mutex mutex_;
  std::condition_variable_any over_;
  std::atomic<bool> told_ = false;
  bool may_ GUARDED_BY(mutex_) = false;
  MayExit may_exit_ GUARDED_BY(mutex_);
  std::function<bool()> pod_goes_ GUARDED_BY(mutex_);
};

}  // namespace sluice::executor
