#pragma once

#include <cstddef>
#include <map>

#include "base/mutex.h"
#include "base/profile.h"
#include "elastic/ids.h"

namespace sluice::elastic {

// What the workers of a job have spent their time on, lost ones too, as of the last call of each.
// Thread-safe.
class WorkerTimes {
 public:
  // `request`: any in which a worker reports its time. One without, or of another version's phases,
  // is ignored.
  template <typename Request>
  void Note(const Request& request) EXCLUDES(mutex_) {
    if (request.seconds_size() != static_cast<int>(kPhases)) {
      return;
    }
    Profile profile;
    for (size_t i = 0; i < kPhases; ++i) {
      profile.Add(Profile::At(i), request.seconds(static_cast<int>(i)));
    }
    const MutexLock lock(mutex_);
    profiles_[Incarnation(request.incarnation())] = profile;
  }

  Profile Sum() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    Profile sum;
    for (const auto& [worker, profile] : profiles_) {
      sum.Add(profile);
    }
    return sum;
  }

 private:
  mutable Mutex mutex_;
  std::map<Incarnation, Profile> profiles_ GUARDED_BY(mutex_);
};

}  // namespace sluice::elastic
