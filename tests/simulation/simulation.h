#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "elastic/master/master.h"
#include "tests/simulation/model_cut.h"
#include "tests/simulation/model_disk.h"
#include "tests/simulation/model_servers.h"
#include "tests/simulation/model_worker.h"
#include "tests/simulation/world.h"

namespace sluice::elastic::simulation {

struct Outcome {
  // Empty when the job ended as it should and every invariant held; else which one did not.
  std::string broken;
  // What happened, so that a run shows that it was worth something.
  int64_t events = 0;
  int64_t kills = 0, pauses = 0, cuts = 0, takeovers = 0, torn = 0, shared = 0, skipped = 0;
  int64_t outages = 0, full_disks = 0, checkpoints = 0, failed_checkpoints = 0, resumed = 0;
  int64_t lost_servers = 0, kept = 0, early_stops = 0;
  int64_t slow_writes = 0, slow_calls = 0, refused_starts = 0;
  double seconds = 0;  // of virtual time
  void Add(const Outcome& other);
};

// One job under one seed's weather and faults: the real Master, TaskQueue, Membership,
// EvaluationRound, journal and ParameterShards; model workers, and a model of the disk. Gradients
// are unit vectors, one for each batch, and the optimizer is plain descent at rate 1: the weights
// count how often each batch was applied on each server.
//
//   I1 every row is trained exactly once in every epoch, by the ledger
//   I2 every gradient is applied exactly once on every server in every epoch, by the weights
//   I3 no range has two owners at the same attempt unless they race by intent, and no server
//   applies a push of an older attempt after it has seen a newer one
//   I4 a checkpoint is a consistent cut: a job that goes on from it keeps all of the above
//   I5 the job ends, and its result is true: all of the above, or the poisoned shard by its name
//   I7 the weights that are kept are those of the epoch that its evaluation judged best, on every
//   server; every evaluation judges the weights of the end of its epoch
//
// I6, of the autoscaler: allocation_test.cc.
class Simulation {
 public:
  // What may happen. kProcesses: to workers, the master and messages. kOutages: also the disk may
  // be full, and all processes, servers too, may be killed at once: the same statement is run
  // again, and goes on from a checkpoint.
  enum class Faults { kProcesses, kOutages };
  struct Options {
    Faults faults = Faults::kProcesses;
    // The best weights are kept, and servers, with backups, are lost. Masters and servers are
    // killed when an epoch has just been judged.
    bool early_stopping = false;
    // What the master asks of others takes long now and then: a group of the journal, a call of the
    // fleet, which may also have no room, keeping the weights.
    bool delays = false;
  };
  Simulation(uint64_t seed, const Options& options);
  ~Simulation();
  // `listener`: gets one line for everything that happens.
  Outcome Run(std::function<void(const std::string&)> listener = {});

 private:
  friend class ModelCut;
  friend class ModelProcess;
  friend class ModelWorker;
  struct Plan;
  void Draw();
  void DrawEarlyStopping();
  void ScheduleFaults();
  void ScheduleLostServers();
  void LoseServer();
  void ScheduleDelays();
  void OnJudged();
  void Fault();
  void ScheduleOutages();
  // Everybody is killed, and the statement run again when the disk has room.
  void Outage();
  void RunAgain();

  TimePoint MasterNow() const;
  void StartMaster();
  Result<std::unique_ptr<Master>> MakeMaster(const std::vector<std::string>& journal);
  void CrashMaster();
  void Store(const std::string& entry);
  // Before a worker hears of an epoch, the journal has it. False: not yet, or the master did not
  // live to.
  bool WriteEpoch(Epoch epoch);
  void Pump();
  // Stores what the master has decided, then does `actions`.
  void Write(std::vector<Master::Action> actions);
  void Act(const Master::Action& action);
  void CallFleet(const Master::Action& action);
  // On all servers from this one on.
  void KeepWeights(Term term, const KeepOrder& order, std::vector<std::string> digests);
  void EndCheckpoint(const Status& written, ModelDisk::Checkpoint checkpoint);
  void StartWorker(const std::string& name, Incarnation incarnation);
  void OnWorkerGone(const std::string& name, ExitClass how);
  ModelWorker* RandomWorker();

  int64_t BatchesOf(ShardId shard) const;
  int64_t RowsBefore(ShardId shard, BatchIndex end) const;
  int64_t RowsOf(ShardId shard) const { return RowsBefore(shard, EndOf(BatchesOf(shard))); }
  Status Push(size_t server, const BatchIdentity& batch, bool end);
  Status Ready(size_t server, const BatchIdentity& batch);
  void SawTask(const Task& task, Incarnation owner);
  void Break(const std::string& what);
  void CheckEnd();
  // After so many epochs.
  struct Moment {
    std::vector<double> weights;
    int64_t version = 0;
  };
  Moment After(uint32_t epochs) const;
  // What an evaluation finds of parameters that have changed so often on each server.
  float Judge(const std::vector<int64_t>& versions) const;
  struct End {
    uint32_t epochs = 0, best = 0;
  };
  End ExpectedEnd() const;
  void CheckWeights(uint32_t epochs);

  World world_;
  const Options run_;
  std::unique_ptr<Plan> plan_;
  Weather weather_;
  Master::Options options_;
  std::unique_ptr<ModelServers> servers_;
  ModelDisk disk_;
  std::vector<int64_t> first_place_;  // of a shard's batches among all batches
  std::optional<ShardId> poisoned_;

  std::unique_ptr<Master> master_;
  double master_clock_ = 0;  // what its clock shows more than the world's
  Term term_ = kNoTerm;
  Epoch epoch_written_ = Epoch::First();
  double pump_seconds_ = 0.05;
  bool writing_ = false;  // a group of the journal
  double slow_until_ = 0;
  double fleet_free_at_ = 0;
  int64_t life_ = 0;  // of the job: an outage ends it
  std::optional<ModelDisk::Checkpoint> restore_;
  std::map<std::string, std::shared_ptr<ModelWorker>> workers_;
  std::set<std::tuple<Epoch, ShardId, RangeId, uint32_t>> owned_;
  bool finished_ = false;
  bool tear_ = false;  // the next entry of the journal
  Outcome outcome_;
};

}  // namespace sluice::elastic::simulation
