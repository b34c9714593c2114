#include "executor/pods/master_exit.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace sluice::executor {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(100);

}  // namespace

MasterExit::Condition::Condition(MasterExit& exit, MayExit may_exit) : exit_(exit) {
  const MutexLock lock(exit_.mutex_);
  exit_.may_exit_ = std::move(may_exit);
}

MasterExit::Condition::~Condition() {
  MutexLock lock(exit_.mutex_);
  exit_.over_.wait(lock.native(),
                   [this]() REQUIRES(exit_.mutex_) { return !exit_.told_ || exit_.may_; });
  exit_.may_exit_ = nullptr;
}

void MasterExit::Wait() {
  told_ = true;
  const auto begun = std::chrono::steady_clock::now();
  const std::chrono::duration<double> longest(kLongestSeconds);
  for (;;) {
    {
      const MutexLock lock(mutex_);
      may_ = !may_exit_ || may_exit_() || std::chrono::steady_clock::now() - begun > longest;
      if (may_) {
        over_.notify_all();
        return;
      }
    }
    std::this_thread::sleep_for(kLookInterval);
  }
}

void MasterExit::AskIfPodGoes(std::function<bool()> pod_goes) {
  const MutexLock lock(mutex_);
  pod_goes_ = std::move(pod_goes);
}

void MasterExit::LeaveToNext(const char* why) {
  Wait();
  std::function<bool()> pod_goes;
  {
    const MutexLock lock(mutex_);
    pod_goes = pod_goes_;
  }
  if (pod_goes && pod_goes()) {
    std::fprintf(stderr, "%s\n", why);
    std::_Exit(0);
  }
  Leave(why);
}

void MasterExit::Leave(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  std::_Exit(kEvicted);
}

}  // namespace sluice::executor
