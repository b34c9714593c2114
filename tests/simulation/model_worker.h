#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/links.h"
#include "tests/simulation/world.h"

namespace sluice::elastic::simulation {

class Simulation;

// A worker process without threads, sockets and rows: it takes tasks, "reads" shards, pushes a
// gradient per batch to every server, and reports, with the same protocol and the same reactions to
// errors as elastic/worker.cc. It may be killed, stopped for a while, or cut off from its master.
class ModelWorker : public std::enable_shared_from_this<ModelWorker> {
 public:
  ModelWorker(Simulation& job, std::string name, Incarnation incarnation, double slowness)
      : job_(job), name_(std::move(name)), incarnation_(incarnation), slowness_(slowness) {}

  void Start();
  void Pause(double until) { paused_until_ = until; }
  void CutOff(double until) { cut_off_until_ = until; }
  void Kill() { alive_ = false; }
  bool alive() const { return alive_; }
  bool CutOff() const;
  const std::string& name() const { return name_; }
  Incarnation incarnation() const { return incarnation_; }

 private:
  struct Lease {
    Task task;
    int64_t batches = 0;
    int64_t next = 0;
    TaskReport report;
    int64_t end() const { return std::min(batches, task.last_batch); }
    bool done() const { return next >= end(); }
  };
  using Then = std::function<void()>;
  // Runs at the other side; what it returns runs here when the answer arrives.
  using Serve = std::function<Then()>;

  // Runs here, later when the process is stopped.
  void Run(const Then& then);
  void Sleep(double seconds, const Then& then);
  // Repeats a call until it is answered, for 30 s.
  void Call(bool to_master, const Serve& serve);
  void Attempt(bool to_master, const Serve& serve, uint64_t call, double give_up);
  void Exit(const std::string& why, bool ok);
  void Beat();

  void Take(bool waiting, std::function<void(std::optional<Task>)> then);
  void Report(Lease* lease, bool done, std::function<void(bool mine)> then);
  void Evaluate(const Task& task, const Then& then);
  bool Crashes(const Task& task);
  void Count(Lease* lease, double loss);
  // Pushes to the servers from `server` on; `then` gets what the first that refused said.
  void Push(Lease* lease, size_t server, bool end, std::function<void(Status)> then);
  Lease MakeLease(const Task& task) const;

  void Asynchronous();
  void Begin(size_t server, int64_t applied);
  void TrainBatch();

  void Lockstep();
  void FillLanes();
  void StepLane(size_t lane, size_t server);

  Simulation& job_;
  const std::string name_;
  const Incarnation incarnation_;
  const double slowness_;
  bool alive_ = true;
  double paused_until_ = 0;
  double cut_off_until_ = 0;
  uint64_t call_ = 0;  // the one that is waited for
  std::vector<int64_t> held_;
  std::optional<Lease> current_, ahead_;
  std::vector<Lease> lanes_;
};

}  // namespace sluice::elastic::simulation
