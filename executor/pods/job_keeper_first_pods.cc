#include <utility>
#include <vector>

#include "executor/pods/job_keeper.h"

namespace sluice::executor {

// Whether or not this keeper leads: nobody else knows them. On a thread of its own, so that no
// master waits for them.
void JobKeeper::MakeFirstPods(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    for (const FirstPods& pods : FirstPodsDue(stop)) {
      CreateFirstPods(client_, pods, stop);
    }
  }
}

std::vector<FirstPods> JobKeeper::FirstPodsDue(const std::stop_token& stop) {
  std::vector<FirstPods> due;
  MutexLock lock(mutex_);
  while (due.empty() && !stop.stop_requested()) {
    std::erase_if(first_pods_, [&](auto& each) REQUIRES(mutex_) {
      const auto kept = jobs_.find(each.first);
      const auto master =
          kept == jobs_.end() ? KeptJob::FirstMaster::kOver : kept->second.first_master();
      if (master == KeptJob::FirstMaster::kPlaced) {
        due.push_back(std::move(each.second));
      }
      return master != KeptJob::FirstMaster::kWaits;
    });
    if (due.empty()) {
      const auto changed = [this, seen = changes_]() REQUIRES(mutex_) { return changes_ != seen; };
      changed_.wait(lock.native(), stop, changed);
    }
  }
  return due;
}

}  // namespace sluice::executor
