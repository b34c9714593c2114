#pragma once

#include <condition_variable>
#include <map>
#include <stop_token>
#include <string>

#include "base/mutex.h"
#include "elastic/fleet/fleet.h"
#include "k8s/pod_fleet.h"

namespace sluice::executor {

class JobRecord;

// A PodFleet whose workers the job's row counts, and whose waiting it tells. Thread-safe.
class JobFleet final : public elastic::Fleet {
 public:
  // `allowed`: how many workers the statement asks for at least and at most.
  struct Allowed {
    int64_t min = 0, max = 0;
  };
  JobFleet(k8s::PodFleet& pods, JobRecord& job, Allowed allowed);

  Status Launch(const elastic::ProcessSpec& spec) override EXCLUDES(mutex_);
  Status Stop(const std::string& name, double grace_seconds) override;
  void Watch(Watcher watcher) override EXCLUDES(mutex_);

  // Ends all that a master before this one has made, and waits until they are gone. False: `stop`
  // was requested first.
  bool EndAdopted(const std::stop_token& stop) EXCLUDES(mutex_);

 private:
  void OnEvent(const elastic::FleetEvent& event) EXCLUDES(mutex_);
  void Count() REQUIRES(mutex_);

  k8s::PodFleet& pods_;
  JobRecord& job_;
  const Allowed allowed_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  Watcher watcher_ GUARDED_BY(mutex_);
  std::map<std::string, elastic::Role> living_ GUARDED_BY(mutex_);
  std::map<std::string, std::string> waits_for_ GUARDED_BY(mutex_);  // told
  int64_t counted_ GUARDED_BY(mutex_) = -1;
};

}  // namespace sluice::executor
