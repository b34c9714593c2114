#include "elastic/worker/worker.h"

#include <utility>

#include "elastic/worker/passes.h"
#include "elastic/worker/training_loop_internal.h"
#include "elastic/worker/worker_tasks_internal.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

Result<std::unique_ptr<TrainingLoop>> MakeLoop(const Worker::Job& job, WorkerTasks& tasks,
                                               const Worker::Replica* replica) {
  if (MakesPasses(job.plan)) {
    return MakePassLoop(tasks, job);
  }
  if (replica != nullptr) {
    return MakeAllReduceLoop(tasks, *replica);
  }
  switch (job.plan.strategy().mode()) {
    case plan::Strategy::SYNCHRONOUS:
      return MakeSynchronousLoop(tasks);
    case plan::Strategy::BOUNDED_STALENESS:
      return MakeBoundedLoop(tasks);
    default:
      return MakeAsynchronousLoop(tasks);
  }
}

}  // namespace

Worker::Worker(MasterLink& master) : master_(master) {}

Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::Make(const Job& job, MasterLink& master,
                                             ParameterLink* parameters, const Replica* replica) {
  std::unique_ptr<Worker> worker(new Worker(master));
  ASSIGN_OR_RETURN(worker->tasks_, WorkerTasks::Make(job, master, parameters));
  ASSIGN_OR_RETURN(worker->loop_, MakeLoop(job, *worker->tasks_, replica));
  return worker;
}

Status Worker::Run(std::stop_token stop) {
  tasks_->HearStop(std::move(stop));
  const PhaseScope working(tasks_->clock(), Phase::kBatches);
  Status status;
  while (status.ok() && !tasks_->finished()) {
    status = tasks_->Stopped();
    if (status.ok()) {
      status = loop_->Advance();
    }
  }
  if (!status.ok()) {
    master_.Leave();
  }
  loop_.reset();
  tasks_->Abandon();
  return status;
}

}  // namespace sluice::elastic
