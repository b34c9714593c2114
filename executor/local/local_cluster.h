#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "executor/cluster.h"
#include "executor/jobs/job_closer.h"
#include "executor/local/room_server.h"
#include "executor/processes/local_fleet.h"
#include "executor/processes/room.h"
#include "executor/processes/slot_arbiter.h"

namespace sluice::executor {

// This machine as a small cluster: the processes of all jobs of one gateway (or one shell). When it
// is destroyed, it ends its processes. Starts nothing, not even a thread, before the first job.
// Thread-safe.
class LocalCluster final : public Cluster {
 public:
  struct Options {
    std::string binary;  // started for every role; empty: /proc/self/exe
    SlotArbiter::Options slots;
  };
  explicit LocalCluster(Options options);
  // For jobs that ask for room elsewhere.
  LocalCluster(Options options, std::unique_ptr<Room> room);
  ~LocalCluster() override;  // every Share must be gone by then

  // From now on grants room to jobs in processes of their own: RoomNameOf. Only for a cluster that
  // owns its room.
  Status ServeRoom(const std::string& name);

  // Called from the cluster's own threads, in the order of events; must not block.
  struct Listener {
    std::function<void(const elastic::FleetEvent&)> on_event;
    Room::OnGrant on_grant;
  };

  // The processes of one job.
  class Share {
   public:
    Share(LocalCluster& cluster, int64_t job, std::shared_ptr<const Listener> listener)
        : cluster_(cluster), job_(job), listener_(std::move(listener)) {}
    ~Share();  // kills the rest of the job's processes, and waits until they are gone
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    Status Launch(const elastic::ProcessSpec& spec);
    Status Stop(const std::string& name, double grace_seconds);
    // The job's speed with this many workers.
    void Report(uint32_t workers, double rows_per_second, double rows_left);

   private:
    LocalCluster& cluster_;
    const int64_t job_;  // the arbiter's number
    const std::shared_ptr<const Listener> listener_;
  };
  // Registers the job, which waits without a process until workers are granted.
  Result<std::unique_ptr<Share>> Open(const Room::Request& request, Listener listener);

  // Cluster
  Result<StartedJob> StartJob(Context& context, JobConfig config, JobSecrets secrets) override;
  Status Train(const plan::TrainPlan& plan, Context& context, JobRecord& job,
               const elastic::ProgressCallback& progress) override;
  Result<elastic::ClusterState> State(const std::stop_token& stop) override;
  Result<elastic::StartForecast> Forecast(const plan::TrainPlan& plan,
                                          const std::stop_token& stop) override;
  // --memory-limit, or what the machine has.
  int64_t memory_bytes() const override { return room_->memory_bytes(); }
  Room* room() override { return room_.get(); }
  JobCloser& closer() override { return closer_; }
  std::string Describe() const override { return "processes of this machine"; }

  // For tests that kill real processes.
  Result<int> ProcessId(const std::string& name);

 private:
  Result<LocalFleet*> Fleet() EXCLUDES(mutex_);
  Result<SlotArbiter*> Arbiter() const;
  struct Owner {
    std::shared_ptr<const Listener> listener;
    int64_t job = 0;
    int64_t memory_bytes = 0;  // limit for a worker, from the arbiter
  };
  Owner OwnerOf(const std::string& name) EXCLUDES(mutex_);
  void Forget(const std::string& name) EXCLUDES(mutex_);

  const Options options_;
  JobCloser closer_;
  const std::unique_ptr<Room> room_;
  SlotArbiter* const arbiter_ = nullptr;  // room_ if that is an arbiter
  std::unique_ptr<RoomServer> room_server_;
  Mutex mutex_;
  std::condition_variable gone_;
  std::map<std::string, Owner> owners_ GUARDED_BY(mutex_);
  std::unique_ptr<LocalFleet> fleet_;  // last: its thread uses the others
};

}  // namespace sluice::executor
