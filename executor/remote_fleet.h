#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/fleet_job.h"

namespace sluice::executor {

// The gateway's fleet, as the master process of one of its jobs sees it: through the connection to
// its launcher. The processes are the gateway's, so they outlive this object and this process; what
// is left of a job when it is over, the gateway ends. Thread-safe.
class RemoteFleet final : public elastic::Fleet {
 public:
  // `living`: processes that an earlier master of the job has started.
  explicit RemoteFleet(const std::vector<elastic::LivingProcess>& living);
  ~RemoteFleet() override;

  Status Launch(const elastic::ProcessSpec& spec) override;
  Status Stop(const std::string& name, double grace_seconds) override;
  void Watch(Watcher watcher) override;

 private:
  void Receive(const std::string& bytes);
  void OnGatewayGone();
  void Emit(const elastic::FleetEvent& event);

  Mutex mutex_;
  Watcher watcher_ GUARDED_BY(mutex_);
  std::vector<elastic::FleetEvent> unwatched_ GUARDED_BY(mutex_);  // from before Watch
  bool gone_ GUARDED_BY(mutex_) = false;
  uint64_t next_launch_ GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::promise<Status>> launches_ GUARDED_BY(mutex_);
  std::map<std::string, elastic::Role> running_ GUARDED_BY(mutex_);
  std::jthread receiver_;  // last: ends before the members it uses go
};

}  // namespace sluice::executor
