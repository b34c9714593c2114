#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/profile.h"
#include "base/status.h"
#include "elastic/rpc/job_endpoint.h"
#include "elastic/rpc/links.h"
#include "elastic/rpc/world.h"
#include "elastic/storage/checkpoint.h"
#include "elastic/worker/read_watch.h"

namespace sluice::catalog {
class DataSource;
class DatasetSpec;
}  // namespace sluice::catalog

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

class TrainingLoop;
class WorkerTasks;

// Takes tasks, reads their shards, trains their batches: pull, step, push, report. The same class
// works in the gateway's process and in a process of its own; only its links differ. Belongs to one
// thread.
class Worker {
 public:
  struct Job {
    const plan::TrainPlan& plan;
    catalog::DataSource& source;
    const catalog::DatasetSpec& dataset;
    const catalog::DatasetSpec* validation = nullptr;  // validation.select
    ReadWatch* reads = nullptr;                        // notified of each read of the database
    // For a model that is found by passes (passes.h): what the epoch adds up, as a step or whole
    // (models/pass_training.h). NotFound: another epoch is running.
    std::function<Result<std::string>(Epoch, bool whole)> pass = {};
    std::function<Result<std::string>()> forest = {};  // the trees that are to be judged
    PhaseClock* clock = nullptr;                       // of the worker's thread; null: none
    // A second thread reads the next shard while this one trains. For the asynchronous loop without
    // `reads`; the model is the same.
    bool reads_beside = false;
    ProfileSum* profile = nullptr;  // receives that thread's time; null: nobody
    // Called once, on the thread that reads, with the reason why no further rows are kept for later
    // epochs on the disk, where memory has no room for them.
    std::function<void(const std::string&)> rows_read_again = {};
  };
  // All-reduce: the workers hold the parameters themselves.
  struct Replica {
    WorldLink& link;
    ParameterShard& shard;  // holds everything; `parameters` leads to it
    std::string listen_host;
    JobKey key;
    // A world without parameters starts from this file of a checkpoint; empty: initial parameters.
    std::string restore_from = {};
    CheckpointManifest::File restore_file = {};
  };
  // Everything in `job`, the links and the shard must outlive the worker. `parameters`: null for
  // trees.
  static Result<std::unique_ptr<Worker>> Make(const Job& job, MasterLink& master,
                                              ParameterLink* parameters,
                                              const Replica* replica = nullptr);
  ~Worker();

  // Works until the master says that the job is over (OK), an error ends it, or `stop` is requested
  // (Cancelled; uncommitted work is handed back). Call once.
  Status Run(std::stop_token stop);

 private:
  explicit Worker(MasterLink& master);

  MasterLink& master_;
  std::unique_ptr<WorkerTasks> tasks_;
  std::unique_ptr<TrainingLoop> loop_;
};

}  // namespace sluice::elastic
