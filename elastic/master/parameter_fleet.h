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
// server that is lost, starts and fills another in its place, moves partitions when their number
// changes. One thread of its own does all of this, one thing after another; beside it another one
// judges which servers live, and waits for nothing. Thread-safe.
//
// A new map is installed in two rounds. FREEZE: every server stops serving, and its followers have
// everything that it acknowledged. ADOPT: every server takes its new place. Workers are shown the
// map after that; what they sent meanwhile they send again. A round is a few milliseconds.
class ParameterFleet {
 public:
  struct Options {
    uint32_t servers = 1;
    uint32_t partitions = 1;
    bool replicas = false;
    JobKey key;
    Term term = Term::First();  // of the master
    double silence_seconds = kServerSilenceSeconds;
    // What the manifests of checkpoints tell; to continue from one, its `partitions`.
    std::optional<CheckpointDirectory> checkpoints;
    std::string model;  // DescribeModel
    bool synchronous = false;
    std::string plan, data;  // CheckpointManifest's
    std::optional<CheckpointDirectory::Found> restore;
    // Goes on from what an earlier master's fleet remembered, with the servers that live.
    std::optional<Placement> placement;
    std::vector<ServerId> living;
  };
  // Called from the fleet's own threads, without a lock.
  struct Hooks {
    // Asks for a process that will register, or of which OnNotStarted is told. Does not wait for
    // it.
    std::function<Status(ServerId)> start;
    std::function<void(ServerId)> stop;  // asks for its end, and does not wait for it
    std::function<void(const PartitionMap&)> publish;
    std::function<void(const std::string& kind, const std::string& detail)> on_event;
    std::function<void(const Status&)> fail;  // the job cannot go on
    // Writes the queue's position into the manifest: called while no server takes a push, so that
    // nothing is committed by it that the parameters do not have.
    std::function<Status(CheckpointManifest*)> cut;
    // The checkpoint that was asked for is on the disk, or will not be.
    std::function<void()> checkpoint_over;
    // Keeps this beyond the master's life, before what follows from it is done. An error: another
    // master has begun.
    std::function<Status(const Placement&)> remember;
  };
  ParameterFleet(const Options& options, Hooks hooks);
  ~ParameterFleet();

  void Start();
  // A server is there, and says so again now and then. False: it has been given up.
  bool OnRegistered(ServerId server, const std::string& address, const std::string& node = "");
  // Its process could not be started. Where there is no room for it, or nobody who could say so
  // (ResourceExhausted, Unavailable), another one is asked for a little later; else the job fails.
  void OnNotStarted(ServerId server, const Status& why);
  // The process has ended, or has been given up. `why` for people.
  void OnLost(ServerId server, const std::string& why);
  // Moves all partitions to so many servers, started or stopped as needed, while training goes on.
  void SetServers(uint32_t servers);
  // Writes a checkpoint beside the training. Servers stand still while they copy what they have in
  // memory (parameters, slots, windows and the queue's position are one cut); they write while they
  // serve. The event is "checkpoint_written" or "checkpoint_failed"; the job goes on either way.
  // One that is asked for while another is under way follows it.
  void RequestCheckpoint();
  // No server is replaced any more.
  void Stop();
  // In Hooks::fail: because the only copy of some partitions was lost.
  bool lost_partitions() const { return over_; }

  // The map that workers are shown; version 0 before the first.
  PartitionMap map() const;
  // Of the job as a whole, through whatever happens to servers meanwhile.
  Result<std::string> Keep(const KeepOrder& order);
  Result<models::NetworkWeights> Collect(const models::Network& network, const std::string& digest);

 private:
  struct Server {
    std::string address;  // empty: starting
    TimePoint last_contact{};
    std::string node = {};
  };
  void GiveUpSilent();
  // A server was lost since the last step began: there is something more urgent.
  bool Interrupted();
  void Forget(ServerId server, const std::string& why) REQUIRES(mutex_);
  void Judge(const std::stop_token& stop);
  void Work(const std::stop_token& stop);
  // Does the next thing that is to be done. False: nothing is.
  Result<bool> Step();
  Result<bool> StartMissing();
  Status StartServers(size_t count);
  std::map<ServerId, std::string> Registered() const REQUIRES(mutex_);
  std::map<ServerId, std::string> Nodes() const REQUIRES(mutex_);
  // parameter_fleet_map.cc
  Status TakeOver(const std::set<ServerId>& lost);
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
  // With each new map, and again while there is none: a server may only have slept.
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
  ServerId next_ GUARDED_BY(mutex_) = 0;
  int failed_starts_ GUARDED_BY(mutex_) = 0;               // since the last registration
  std::map<ServerId, Server> servers_ GUARDED_BY(mutex_);  // alive, as far as is known
  std::map<ServerId, std::string> why_lost_ GUARDED_BY(mutex_);
  Status not_started_ GUARDED_BY(mutex_);       // why servers cannot be started
  TimePoint start_after_ GUARDED_BY(mutex_){};  // there was no room
  PartitionMap map_ GUARDED_BY(mutex_);         // that workers are shown
  Status failed_ GUARDED_BY(mutex_);            // there will be no other map
  int losses_ GUARDED_BY(mutex_) = 0;
  // The thread's own.
  int losses_seen_ = 0;
  std::vector<ServerId> strangers_;  // that the last master has given up
  bool filling_ = false;             // servers may ship to one that the map does not have
  uint64_t version_ = 0;             // the last that was tried
  bool over_ = false;                // partitions are lost
  uint64_t checkpoints_written_ = 0;
  std::jthread thread_, judge_;
};

}  // namespace sluice::elastic
