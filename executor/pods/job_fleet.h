#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "catalog/job_store.h"
#include "elastic/fleet/fleet.h"
#include "executor/pods/job_places.h"
#include "k8s/pod_fleet.h"

namespace sluice::executor {

class JobRecord;
class JobStatus;

// A PodFleet that records its workers in the job's row and reports those that wait. Workers are
// created once the servers have their places, give way to servers that find none, and are withdrawn
// where no node has room for them (kGranted): see JobPlaces. Thread-safe.
class JobFleet final : public elastic::Fleet {
 public:
  // The numbers of processes that the statement asks for: workers at first, at least and at most;
  // servers.
  struct Asked {
    uint32_t workers = 1, min = 0, max = 0, servers = 0;
  };
  JobFleet(std::unique_ptr<k8s::PodFleet> pods, JobRecord& job, JobStatus& status, Asked asked);

  Status Launch(const elastic::ProcessSpec& spec) override EXCLUDES(mutex_);
  Status Stop(const std::string& name, double grace_seconds) override EXCLUDES(mutex_);
  void Watch(Watcher watcher) override EXCLUDES(mutex_);

  // Sets the number of workers from now on; if it is smaller, the named ones leave first. Those
  // that start had better be placed on `nodes`. `why`: for people; may be empty.
  void Want(uint32_t workers, std::vector<std::string> give_up, std::vector<std::string> nodes,
            const std::string& why) EXCLUDES(mutex_);

  // Ends the pods that an earlier master created, except those of a run (IsOfRun; empty: of none),
  // waits for their ends for some seconds, and forgets them. False: `stop` was requested first.
  bool EndAdopted(const std::string& except_run, double seconds, const std::stop_token& stop)
      EXCLUDES(mutex_);

 private:
  void OnEvent(const elastic::FleetEvent& event) EXCLUDES(mutex_);
  void ReportEvent(const elastic::FleetEvent& event) EXCLUDES(mutex_);
  void Count() REQUIRES(mutex_);
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  void Proceed() EXCLUDES(mutex_);
  void Changed() REQUIRES(mutex_);
  void PlaceIfKnown(const std::string& name) REQUIRES(mutex_);

  JobRecord& job_;
  JobStatus& status_;
  const Asked asked_;
  const SteadyClock clock_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  Watcher watcher_ GUARDED_BY(mutex_);
  std::vector<elastic::FleetEvent> unheard_ GUARDED_BY(mutex_);  // until there is a watcher
  std::map<std::string, elastic::Role> living_ GUARDED_BY(mutex_);
  std::map<std::string, std::string> waits_for_ GUARDED_BY(mutex_);  // reported reasons
  std::map<std::string, std::string> nodes_ GUARDED_BY(mutex_);      // of running pods
  std::set<std::string> stopped_ GUARDED_BY(mutex_);                 // by us
  catalog::JobWorkers counted_ GUARDED_BY(mutex_) = {-1, 0, 0, 0};
  JobPlaces places_ GUARDED_BY(mutex_);
  uint32_t wanted_ GUARDED_BY(mutex_);
  std::vector<std::string> give_up_ GUARDED_BY(mutex_);
  bool yielded_ GUARDED_BY(mutex_) = false;  // workers did, to servers
  bool crowded_ GUARDED_BY(mutex_) = false;  // workers were withdrawn for lack of room
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, elastic::ProcessSpec> held_ GUARDED_BY(mutex_);  // held back for servers
  std::vector<elastic::FleetEvent> unmade_ GUARDED_BY(mutex_);           // ends to report
  // Last: their threads use the others.
  const std::unique_ptr<k8s::PodFleet> pods_;
  std::jthread thread_;
};

}  // namespace sluice::executor
