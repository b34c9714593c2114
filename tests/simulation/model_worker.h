#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/rpc/links.h"
#include "tests/simulation/model_process.h"

namespace sluice::elastic::simulation {

// A worker without data: it takes tasks, "reads" shards, pushes a gradient per batch to every
// server, and reports, with the same protocol and the same error handling as
// elastic/worker/worker.cc.
class ModelWorker final : public ModelProcess {
 public:
  using ModelProcess::ModelProcess;
  void Start();

 private:
  struct Lease {
    Task task;
    int64_t batches = 0;
    BatchIndex next;
    TaskReport report;
    BatchIndex end() const { return std::min(EndOf(batches), task.last_batch); }
    bool done() const { return next >= end(); }
  };
  std::shared_ptr<ModelWorker> Self() {
    return std::static_pointer_cast<ModelWorker>(shared_from_this());
  }
  void Take(bool waiting, std::function<void(std::optional<Task>)> then);
  void Report(Lease* lease, bool done, std::function<void(bool mine)> then);
  void Evaluate(const Task& task, const Then& then);
  void EvaluateAt(const std::vector<int64_t>& versions, const Task& task, const Then& then);
  // Asks the servers from number `versions.size()` on for their versions.
  void AskVersions(std::vector<int64_t> versions, std::function<void(std::vector<int64_t>)> then);
  bool Crashes(const Task& task);
  void Count(Lease* lease, double loss);
  // Pushes to the servers from number `server` on; `then` receives the first refusal.
  void Push(Lease* lease, size_t server, bool end, std::function<void(Status)> then);
  Lease MakeLease(const Task& task) const;

  void Asynchronous();
  void Begin(size_t server, BatchIndex applied);
  void TrainBatch();

  void Lockstep();
  void FillLanes();
  void StepLane(size_t lane, size_t server);

  std::vector<TaskId> held_;
  std::optional<Lease> current_, ahead_;
  std::vector<Lease> lanes_;
};

}  // namespace sluice::elastic::simulation
