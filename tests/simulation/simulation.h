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
  // Empty if the job ended as it should and every invariant held; else the violated one.
  std::string broken;
  // Counts of what happened, to show that a run exercised something.
  int64_t events = 0;
  int64_t kills = 0, pauses = 0, cuts = 0, takeovers = 0, torn = 0, shared = 0, skipped = 0;
  int64_t outages = 0, full_disks = 0, checkpoints = 0, failed_checkpoints = 0, resumed = 0;
  int64_t lost_servers = 0, kept = 0, early_stops = 0;
  int64_t slow_writes = 0, slow_calls = 0, refused_starts = 0;
  double seconds = 0;  // of virtual time
  void Add(const Outcome& other);
};

// One job under the messages' weather and the faults of one seed: the real Master, TaskQueue,
// Membership, EvaluationRound, journal and ParameterShards; model workers, and a model of the disk.
// Gradients are unit vectors, one for each batch, and the optimizer is plain descent at rate 1: the
// weights count how often each batch was applied on each server.
//
//   I1 every row is trained exactly once in every epoch, by the ledger
//   I2 every gradient is applied exactly once on every server in every epoch, by the weights
//   I3 no range has two owners at the same attempt unless they are made to race, and no server
//   applies a push of an older attempt after it has seen a newer one
//   I4 a checkpoint is a consistent cut: a job that continues from it keeps all of the above
//   I5 the job ends, and its result is correct: all of the above, or an error that names the
//   poisoned shard
//   I7 the weights that are kept are those of the epoch with the best evaluation, on every server;
//   every evaluation uses the weights at the end of its epoch
//
// I6, of the autoscaler: allocation_test.cc.
class Simulation {
 public:
  // The possible faults. kProcesses: of workers, the master and messages. kOutages: also the disk
  // may be full, and all processes, including servers, may be killed at once: then the same
  // statement is run again, and continues from a checkpoint.
  enum class Faults { kProcesses, kOutages };
  struct Options {
    Faults faults = Faults::kProcesses;
    // The best weights are kept, and servers, which have backups, are lost. Masters and servers are
    // killed when an epoch has just been evaluated.
    bool early_stopping = false;
    // Calls of the master are sometimes slow: a group of the journal, a call of the fleet (which
    // may also have no room), keeping the weights.
    bool delays = false;
  };
  Simulation(uint64_t seed, const Options& options);
  ~Simulation();
  // `listener`: receives one line for every event.
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
  // Kills all processes; the statement is run again when the disk has room.
  void Outage();
  void RunAgain();

  TimePoint MasterNow() const;
  void StartMaster();
  Result<std::unique_ptr<Master>> MakeMaster(const std::vector<std::string>& journal);
  void CrashMaster();
  void Store(const std::string& entry);
  // An epoch is in the journal before any worker starts it. False: not yet, or the master died
  // first.
  bool WriteEpoch(Epoch epoch);
  void Pump();
  // Stores the master's decisions, then performs `actions`.
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
  // The state after this many epochs.
  struct Moment {
    std::vector<double> weights;
    int64_t version = 0;
  };
  Moment After(uint32_t epochs) const;
  // The evaluation of parameters that have changed this often on each server.
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
  double master_clock_ = 0;  // difference between its clock and the world's
  Term term_ = kNoTerm;
  Epoch epoch_written_ = Epoch::First();
  double pump_seconds_ = 0.05;
  bool writing_ = false;  // a group of the journal
  double slow_until_ = 0;
  double fleet_free_at_ = 0;
  int64_t life_ = 0;  // life of the job: an outage ends it
  std::optional<ModelDisk::Checkpoint> restore_;
  std::map<std::string, std::shared_ptr<ModelWorker>> workers_;
  std::set<std::tuple<Epoch, ShardId, RangeId, Attempt>> owned_;
  bool finished_ = false;
  bool tear_ = false;  // truncate the journal's next entry
  Outcome outcome_;
};

}  // namespace sluice::elastic::simulation
