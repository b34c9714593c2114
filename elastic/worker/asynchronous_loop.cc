#include <algorithm>
#include <utility>

#include "base/log.h"
#include "elastic/worker/training_loop_internal.h"

// Trains shards one after the other, at this worker's own pace.
namespace sluice::elastic {
namespace {

// A worker that is told to stop finishes its shard first if that takes at most so many seconds:
// another worker would have to read all of the shard's rows again.
constexpr double kFinishSeconds = 0.5;
constexpr double kNewBatchWeight = 0.2;  // in the mean duration of a batch

class AsynchronousLoop final : public TrainingLoop {
 public:
  AsynchronousLoop(WorkerTasks& tasks, ParameterLink& parameters)
      : tasks_(tasks), network_(tasks.network()), parameters_(parameters) {}

  Status Advance() override {
    RETURN_IF_ERROR(std::exchange(read_ahead_, Status()));
    ASSIGN_OR_RETURN(const std::unique_ptr<Lease> lease, NextLease());
    if (lease == nullptr) {
      return Status();
    }
    RETURN_IF_ERROR(SkipApplied(lease.get()));
    RETURN_IF_ERROR(AskAhead());
    return TrainShard(lease.get());
  }

 private:
  struct Batch {
    models::FeatureBatch rows;
    models::ParameterView view;
  };
  Result<std::unique_ptr<Lease>> NextLease();
  Status SkipApplied(Lease* lease);
  Status AskAhead();
  Status LoadAhead(size_t trained_rows);
  Status TrainShard(Lease* lease);
  void MakeBatch(Lease* lease, BatchIndex index, Batch* batch);
  models::LossSum Step(const Lease& lease);
  Status PushAndPullNext(Lease* lease, double weight);
  Status LoseToOthers(Lease* lease);
  // Cancelled: a stop was requested, and the rest of the shard takes too long to be finished.
  Status StopUnlessNearlyDone(const Lease& lease) const;

  WorkerTasks& tasks_;
  models::Network& network_;
  ParameterLink& parameters_;
  std::unique_ptr<Lease> next_;  // read while the current one is trained
  size_t load_credit_ = 0;       // rows of next_ that may be read for the training done
  Batch batch_, next_batch_, batch_after_;
  Status read_ahead_;
  models::Gradient gradient_;
  SteadyClock clock_;
  double batch_seconds_ = 0;   // mean of the last ones; 0: none yet
  double beside_seconds_ = 0;  // spent in reading the next shard during this one's batch
};

Result<std::unique_ptr<Lease>> AsynchronousLoop::NextLease() {
  if (next_ == nullptr) {
    return tasks_.Take(true);
  }
  std::unique_ptr<Lease> next = std::move(next_);
  ASSIGN_OR_RETURN(const bool mine, tasks_.ReadRest(next.get()));
  return mine ? std::move(next) : nullptr;
}

// Finds where to continue if an earlier holder of this shard got further than it could report. In a
// range that was split off, that is found push by push.
Status AsynchronousLoop::SkipApplied(Lease* lease) {
  const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
  const Task& task = lease->task;
  if (task.attempt <= Attempt::First() || task.range != RangeId::First()) {
    return Status();
  }
  ASSIGN_OR_RETURN(const BatchIndex applied, parameters_.AppliedBatches(task.epoch, task.shard));
  while (lease->next < std::min(applied, lease->end())) {
    RETURN_IF_ERROR(lease->Count({}));
  }
  lease->report.rows_retried = lease->report.rows;
  return Status();
}

Status AsynchronousLoop::AskAhead() {
  ASSIGN_OR_RETURN(std::optional<Task> task, tasks_.Ask(false));
  if (!task.has_value()) {
    return Status();
  }
  SLUICE_CHECK(task->kind == Task::Kind::kTrain, "only training tasks are asked for ahead");
  ASSIGN_OR_RETURN(next_, tasks_.Start(*std::move(task)));
  load_credit_ = 0;
  return Status();
}

// Interleaves reading with training on the same thread, so that both shards are ready at about the
// same time and the database never waits for long.
Status AsynchronousLoop::LoadAhead(size_t trained_rows) {
  if (next_ == nullptr || next_->rows != nullptr || tasks_.reads_beside() ||
      !tasks_.Stopped().ok() ||
      tasks_.waiting_for_database()) {  // the wait for the database can happen later
    return Status();
  }
  load_credit_ +=
      trained_rows + trained_rows / 4;  // shards differ, and there are validation rows in addition
  if (load_credit_ < WorkerTasks::kLeastRows) {
    return Status();
  }
  const TimePoint begun = clock_.Now();
  Status read = tasks_.Read(next_.get(), std::exchange(load_credit_, 0)).status();
  beside_seconds_ += SecondsBetween(begun, clock_.Now());
  if (!read.ok()) {
    next_ = nullptr;
  }
  return read;
}

void AsynchronousLoop::MakeBatch(Lease* lease, BatchIndex index, Batch* batch) {
  lease->MakeBatch(index, &network_, &batch->rows, &batch->view);
}

models::LossSum AsynchronousLoop::Step(const Lease& lease) {
  const PhaseScope learning(tasks_.clock(), Phase::kLearning);
  return network_.Step(batch_.rows, batch_.view, lease.StepSeed(), &gradient_);
}

// Pushes the lease's next batch, and pulls for the following one. While the servers compute, this
// thread reads the next shard and makes the batch after that.
Status AsynchronousLoop::PushAndPullNext(Lease* lease, double weight) {
  const BatchIndex batch = lease->next;
  const BatchIdentity identity = lease->Identity(batch);
  const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
  if (batch + 1 >= lease->end()) {
    return parameters_.Push(identity, weight, batch_.view, gradient_);
  }
  const BatchPush push{identity, weight, &batch_.view, &gradient_};
  RETURN_IF_ERROR(
      parameters_.PushAndPull({&push, 1}, lease->Identity(batch + 1), &next_batch_.view, [&] {
        const PhaseScope making(tasks_.clock(), Phase::kBatches);
        if (batch + 2 < lease->end()) {
          MakeBatch(lease, batch + 2, &batch_after_);
        }
        read_ahead_ = LoadAhead(batch_.rows.rows);
      }));
  std::swap(batch_, next_batch_);
  std::swap(next_batch_, batch_after_);
  return Status();
}

Status AsynchronousLoop::TrainShard(Lease* lease) {
  if (!lease->done()) {
    MakeBatch(lease, lease->next, &batch_);
    if (lease->next + 1 < lease->end()) {
      MakeBatch(lease, lease->next + 1, &next_batch_);
    }
    const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
    const Status pulled =
        parameters_.Pull(lease->Identity(lease->next), Purpose::kStep, &batch_.view);
    if (!pulled.ok()) {
      return tasks_.Fail(lease->task, pulled);
    }
  }
  while (!lease->done()) {
    RETURN_IF_ERROR(StopUnlessNearlyDone(*lease));
    const TimePoint begun = clock_.Now();
    const models::LossSum loss = Step(*lease);
    const Status pushed = PushAndPullNext(lease, loss.weight);
    const double seconds =
        SecondsBetween(begun, clock_.Now()) - std::exchange(beside_seconds_, 0.0);
    batch_seconds_ += (batch_seconds_ == 0 ? 1 : kNewBatchWeight) * (seconds - batch_seconds_);
    if (pushed.code() == Code::kAborted) {
      return LoseToOthers(lease);
    }
    if (!pushed.ok()) {
      RETURN_IF_ERROR(tasks_.Stopped());  // servers may have been stopped, too
      return tasks_.Fail(lease->task, pushed);
    }
    if (const Status counted = lease->Count(loss); !counted.ok()) {
      return tasks_.Fail(lease->task, counted);
    }
    if (tasks_.TimeToReport()) {
      ASSIGN_OR_RETURN(const bool mine, tasks_.Report(lease, false));
      if (!mine || lease->report.done) {
        return Status();
      }
    }
    RETURN_IF_ERROR(std::exchange(read_ahead_, Status()));
  }
  return tasks_.Report(lease, true).status();
}

Status AsynchronousLoop::StopUnlessNearlyDone(const Lease& lease) const {
  const Status stopped = tasks_.Stopped();
  const double seconds = static_cast<double>(lease.end() - lease.next) * batch_seconds_;
  const bool finishes =
      tasks_.SharesWork() && lease.next > lease.task.first_batch && seconds <= kFinishSeconds;
  return finishes ? Status() : stopped;
}

// A server has refused a push: another worker holds the range now, or a part of it from some batch
// on.
Status AsynchronousLoop::LoseToOthers(Lease* lease) {
  ASSIGN_OR_RETURN(const bool mine, tasks_.Report(lease, lease->done()));
  if (!mine || !lease->report.done) {
    log::Info("shard {} of epoch {} went to another worker", lease->task.shard, lease->task.epoch);
    tasks_.master().Abandon(lease->task.id);
  }
  return Status();
}

// Begins a batch, that is, pulls for it, only when the master says that the slowest worker is close
// enough. A push and the next pull are two calls, since others may wait for this very push.
class BoundedLink final : public ParameterLink {
 public:
  explicit BoundedLink(WorkerTasks& tasks) : tasks_(tasks), link_(tasks.parameters()) {}

  Status Pull(const BatchIdentity& batch, Purpose purpose, models::ParameterView* view) override {
    for (bool may = false; !may;) {
      RETURN_IF_ERROR(tasks_.Stopped());
      ASSIGN_OR_RETURN(may, tasks_.master().MayBegin(pushed_));
    }
    return link_.Pull(batch, purpose, view);
  }
  Status Push(const BatchIdentity& batch, double weight, const models::ParameterView& view,
              const models::Gradient& gradient) override {
    RETURN_IF_ERROR(link_.Push(batch, weight, view, gradient));
    ++pushed_;
    return Status();
  }
  Status PushEnd(const BatchIdentity& batch) override { return link_.PushEnd(batch); }
  std::vector<int64_t> Versions() const override { return link_.Versions(); }
  Result<BatchIndex> AppliedBatches(Epoch epoch, ShardId shard) override {
    return link_.AppliedBatches(epoch, shard);
  }

 private:
  WorkerTasks& tasks_;
  ParameterLink& link_;
  int64_t pushed_ = 0;  // batches
};

class BoundedLoop final : public TrainingLoop {
 public:
  explicit BoundedLoop(WorkerTasks& tasks) : link_(tasks), loop_(tasks, link_) {}
  Status Advance() override { return loop_.Advance(); }

 private:
  BoundedLink link_;
  AsynchronousLoop loop_;
};

}  // namespace

std::unique_ptr<TrainingLoop> MakeAsynchronousLoop(WorkerTasks& tasks) {
  return std::make_unique<AsynchronousLoop>(tasks, tasks.parameters());
}

std::unique_ptr<TrainingLoop> MakeBoundedLoop(WorkerTasks& tasks) {
  return std::make_unique<BoundedLoop>(tasks);
}

}  // namespace sluice::elastic
