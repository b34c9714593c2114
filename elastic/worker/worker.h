#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/rpc/links.h"
#include "elastic/rpc/world.h"
#include "elastic/storage/checkpoint.h"
#include "elastic/worker/shard_rows.h"
#include "models/model.h"

namespace sluice::catalog {
class DataSource;
class DatasetSpec;
}  // namespace sluice::catalog

namespace sluice::models {
class Metrics;
}

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

// Takes tasks, reads their shards, trains their batches: pull, step, push, report. The same object
// works in the gateway's process and in a process of its own; only its links differ.
// Belongs to one thread.
class Worker {
 public:
  struct Job {
    const plan::TrainPlan& plan;
    catalog::DataSource& source;
    const catalog::DatasetSpec& dataset;
    const catalog::DatasetSpec* validation = nullptr;  // validation.select
    ReadWatch* reads = nullptr;                        // is told of each read of the database
  };
  // All-reduce: the parameters live in the workers, which are each other's servers.
  struct Replica {
    WorldLink& link;
    ParameterShard& shard;  // everything; `parameters` leads to it
    std::string listen_host;
    std::string token;
    // A world without parameters begins with this file of a checkpoint; empty: fresh.
    std::string restore_from = {};
    CheckpointManifest::File restore_file = {};
  };
  // Everything in `job`, the links and the shard must outlive the worker.
  static Result<std::unique_ptr<Worker>> Make(const Job& job, MasterLink& master,
                                              ParameterLink& parameters,
                                              const Replica* replica = nullptr);
  ~Worker();

  // Works until the master says that the job is over (OK), an error ends it, or `stop` is requested
  // (Cancelled; what was not committed is handed back).
  Status Run(std::stop_token stop);

 private:
  // A task, the rows of its shard, and what has been done of it.
  struct Lease;
  Worker(const Job& job, MasterLink& master, ParameterLink& parameters);
  Status MakeLoaders();
  Status Work();

  // worker_asynchronous.cc
  Status WorkAsynchronously();
  Status AskAhead();
  Status LoadAhead(size_t trained_rows);
  Status TrainShard(Lease* lease);
  Status PushAndPullNext(const Lease& lease, double weight);
  // Bounded staleness: waits until the slowest worker is near enough.
  Status WaitForTheSlowest();

  // worker_synchronous.cc
  Status WorkInLockstep();
  Status FillLanes();
  Status StepLane(Lease* lease, bool* not_open);

  // worker_world.cc
  struct World;
  Status JoinWorld(const Replica& replica);
  Status WorkInWorld();
  Status EnterWorld(const WorldAnswer& answer);
  Status ShareState(const Rendezvous::World& formed);
  Status DeliverWeights();
  Status DigestKept();
  Status EvaluateAll();
  Status LoadLanes(const std::vector<Task>& lanes, uint32_t begin, uint32_t end);
  Status TrainRound(const WorldAnswer& answer);
  Status StepLanes(uint32_t lanes);
  Status CloseStep(const std::vector<Task>& lanes);

  // One task for a worker that has nothing else to do; a training task is answered as a lease,
  // complete with rows; evaluation tasks are done on the spot. nullptr: ask again.
  Result<std::unique_ptr<Lease>> TakeAndLoad(bool waiting);
  Status Load(Lease* lease);
  Status Begin(Lease* lease);
  BatchIdentity Identity(const Lease& lease, int64_t batch) const;
  void GatherBatch(const Lease& lease, int64_t batch, models::FeatureBatch* out) const;
  uint64_t StepSeed(const Lease& lease, int64_t batch) const;
  void Count(Lease* lease, const models::LossSum& loss);
  // False: the task is someone else's now. The task may have become shorter: then what lies beyond
  // its new end is not reported, and it may be done.
  Result<bool> Report(Lease* lease, bool done);
  // A server refused a push: the lease has moved on, wholly or from some batch on.
  Status LeaveToOthers(Lease* lease);
  void CutShort(Lease* lease, int64_t last_batch) const;
  bool TimeToReport();
  // Tells the master why a task cannot be done, and returns why.
  Status FailTask(const Task& task, const Status& cause);
  Status Judge(const Task& task);  // what is not training: an evaluation, a comparison
  Status Evaluate(const Task& task);
  Status Compare(const Task& task);
  Status EvaluateOnce(const Task& task, ShardLoader* loader, TaskReport* report);
  Status EvaluateRows(const models::FeatureBatch& rows, models::Metrics* metrics,
                      std::vector<int64_t>* first);
  Status Stopped();

  const Job job_;
  MasterLink& master_;
  ParameterLink& parameters_;
  std::unique_ptr<models::Network> network_;
  std::unique_ptr<ShardLoader> loader_;
  std::unique_ptr<ShardLoader> validation_loader_;
  size_t batch_rows_ = 0;
  bool synchronous_ = false;
  bool bounded_ = false;  // staleness
  bool finished_ = false;
  std::stop_token stop_;
  SteadyClock clock_;
  TimePoint last_report_{};

  std::unique_ptr<Lease> next_;  // asynchronous: read while the current one is trained
  int64_t pushed_ = 0;           // batches; bounded staleness
  size_t load_credit_ = 0;       // rows of next_ that training has earned
  std::vector<std::unique_ptr<Lease>> lanes_;  // synchronous
  std::unique_ptr<World> world_;               // all-reduce

  std::vector<int64_t> judged_;  // the parameters' versions in the last evaluation
  models::FeatureBatch batch_, next_batch_;
  models::ParameterView view_, next_view_;
  models::Gradient gradient_;
};

}  // namespace sluice::elastic
