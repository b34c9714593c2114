#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/master/waking_clock.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/parameters/placement.h"
#include "elastic/rpc/job_endpoint.h"
#include "elastic/rpc/parameter_control.h"

namespace sluice::elastic {

// Keeps a job's parameters alive: starts its servers, makes the maps, promotes the backups of a
// lost server, starts and fills a replacement, moves partitions when the number of servers changes
// or a server that has the only copy of some is about to end.
// One thread of its own does all of this, one thing after another; a second one detects lost
// servers, and never blocks. Thread-safe.
//
// A new map is installed in two rounds. FREEZE: every server stops serving, and its followers have
// everything that it acknowledged. ADOPT: every server takes its new role. Then workers get the
// map; what they sent meanwhile they send again. A round takes a few milliseconds.
class ParameterFleet {
 public:
  struct Options {
    uint32_t servers = 1;
    uint32_t partitions = 1;
    bool replicas = false;
    JobKey key;
    Term term = Term::First();  // of the master
    double silence_seconds = kServerSilenceSeconds;
    double last_copy_silence_seconds = kLastCopySilenceSeconds;
    // Their description in the manifests of checkpoints; to continue from one, its `partitions`.
    std::optional<CheckpointDirectory> checkpoints;
    std::string model;  // DescribeModel
    bool synchronous = false;
    std::string plan, data;  // CheckpointManifest's
    std::optional<CheckpointDirectory::Found> restore;
    // Continues from the placement of an earlier master's fleet, with the running servers.
    std::optional<Placement> placement;
    // Without a placement: the number of the first server. Those of an earlier life of the job may
    // still run on a node that was lost.
    ServerId first_server = ServerId::First();
    std::vector<ServerId> running;
  };
  // Called from the fleet's own threads, without a lock.
  struct Hooks {
    // Requests a process, which will register, or be reported by OnNotStarted. Does not wait for
    // it.
    std::function<Status(ServerId)> start;
    std::function<void(ServerId)> stop;  // requests its end, without waiting
    std::function<void(const PartitionMap&)> publish;
    std::function<void(const std::string& kind, const std::string& detail)> on_event;
    std::function<void(const Status&)> fail;  // the job cannot continue
    // Writes the queue's position into the manifest: called while no server accepts a push, so that
    // the queue has committed nothing that the parameters do not contain.
    std::function<Status(CheckpointManifest*)> cut;
    // The requested checkpoint is on disk, or will not be.
    std::function<void()> checkpoint_over;
    // Stores the placement so that it outlives the master, before its consequences are carried out.
    // An error: another master has begun.
    std::function<Status(const Placement&)> remember;
  };
  ParameterFleet(const Options& options, Hooks hooks);
  ~ParameterFleet();

  void Start();
  // A server registers, and again from time to time. False: it has been given up.
  bool OnRegistered(ServerId server, const std::string& address, const std::string& node = "");
  // Its process could not be started. If there is no room for it, or that is unknown
  // (ResourceExhausted, Unavailable), another one is requested a little later; otherwise the job
  // fails.
  void OnNotStarted(ServerId server, const Status& why);
  // The process was told to end, and goes on serving for a while. True: it has the only copy of
  // some partitions; they are moved to others, then it is stopped. False: nothing of it is needed,
  // as after OnLost.
  bool OnLeaving(ServerId server, const std::string& why);
  // The process has ended, or has been given up. `why` for people.
  void OnLost(ServerId server, const std::string& why);
  // Moves all partitions to this many servers, started or stopped as needed, while training
  // continues.
  void SetServers(uint32_t servers);
  uint32_t wanted() const;
  // The number of the next server that it would start.
  ServerId next_server() const;
  // There are as many as wanted, all of them answer, and each holds what it is to hold.
  bool complete() const;
  // Writes a checkpoint during the training. Servers pause while they copy their memory
  // (parameters, slots, windows and the queue's position form one cut), and write while they serve.
  // The event is "checkpoint_written" or "checkpoint_failed"; the job continues in either case. A
  // request during another checkpoint is carried out after it.
  void RequestCheckpoint();
  // From now on no server is replaced.
  void Stop();
  // In Hooks::fail: the reason is that the only copy of some partitions was lost.
  bool lost_partitions() const { return over_; }

  // The map that workers get; version 0 before the first.
  PartitionMap map() const;
  // For the job as a whole, even if servers are lost meanwhile.
  Result<std::string> Keep(const KeepOrder& order);
  Result<models::NetworkWeights> Collect(const models::Network& network, const std::string& digest);

 private:
  struct Server {
    std::string address;  // empty: starting
    TimePoint last_contact{};
    std::string node = {};
    bool waited_for = false;  // it is silent, and has the only copy of something
    bool leaving = false;     // others get its partitions
  };
  void GiveUpSilent();
  // A server was lost since the last step began, which is more urgent.
  bool Interrupted();
  void Forget(ServerId server, const std::string& why) REQUIRES(mutex_);
  void Judge(const std::stop_token& stop);
  void Work(const std::stop_token& stop);
  // Performs the next step. False: there is none.
  Result<bool> Step();
  Result<bool> StartMissing();
  Status StartServers(size_t count);
  // Those that stay and have registered.
  std::map<ServerId, std::string> Registered() const REQUIRES(mutex_);
  size_t Staying() const REQUIRES(mutex_);  // those that are starting, too
  bool HasOnlyCopies(ServerId server) const REQUIRES(mutex_);
  std::map<ServerId, std::string> Nodes() const REQUIRES(mutex_);
  // parameter_fleet_map.cc
  Status TakeOver(const std::set<ServerId>& lost);
  std::set<ServerId> WithLastCopies(const std::set<ServerId>& silent) const REQUIRES(mutex_);
  std::vector<ServerId> TakeSuperfluous() REQUIRES(mutex_);
  Result<bool> Rebalance();
  // Copies what `next` needs, then installs it. False: a server was lost meanwhile.
  Result<bool> Move(const PartitionMap& now, const PartitionMap& next);
  // `frozen` is called when no server serves.
  Status Install(const PartitionMap& map, ParameterControl::Phase phase,
                 const std::function<Status()>& frozen = {});
  Status Remember(const PartitionMap& map) EXCLUDES(mutex_);
  // parameter_fleet_checkpoint.cc
  Result<bool> CheckpointIfDue();
  Status TakeCut(const CheckpointDirectory::Draft& draft);
  Status SnapshotAll(const PartitionMap& map) const;
  // Asks with each new map, and again with the same one: a server may only have been asleep.
  Status AskAll(const std::function<Status(const PartitionMap&)>& ask);

  Options options_;
  const Hooks hooks_;
  const SteadyClock steady_;
  const WakingClock clock_{steady_};
  std::stop_source stop_;
  const ParameterControl control_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  uint32_t wanted_ GUARDED_BY(mutex_);
  uint64_t checkpoints_wanted_ GUARDED_BY(mutex_) = 0;
  ServerId next_ GUARDED_BY(mutex_);
  int failed_starts_ GUARDED_BY(mutex_) = 0;               // since the last registration
  std::map<ServerId, Server> servers_ GUARDED_BY(mutex_);  // alive, as far as is known
  std::map<ServerId, std::string> why_lost_ GUARDED_BY(mutex_);
  Status not_started_ GUARDED_BY(mutex_);       // why servers cannot be started
  TimePoint start_after_ GUARDED_BY(mutex_){};  // there was no room
  PartitionMap map_ GUARDED_BY(mutex_);         // the map that workers get
  Status failed_ GUARDED_BY(mutex_);            // there will be no further map
  int losses_ GUARDED_BY(mutex_) = 0;
  // The thread's own.
  int losses_seen_ = 0;
  std::vector<ServerId> unknown_servers_;  // given up by the previous master
  bool filling_ = false;                   // servers may be shipping to one that is not in the map
  MapVersion version_ = kNoMapVersion;     // the last one tried
  bool over_ = false;                      // partitions are lost
  uint64_t checkpoints_written_ = 0;
  std::jthread thread_, judge_;
};

}  // namespace sluice::elastic
