#include "base/log.h"
#include "elastic/worker/worker_lease_internal.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// Rows of the next shard read at a time between two batches.
constexpr size_t kLoadAheadRows = 1024;

}  // namespace

Status Worker::WorkAsynchronously() {
  std::unique_ptr<Lease> lease = std::move(next_);
  if (lease == nullptr) {
    ASSIGN_OR_RETURN(lease, TakeAndLoad(true));
    if (lease == nullptr) {
      return Status();
    }
  } else {
    // What training did not leave time for.
    for (bool complete = false; !complete;) {
      RETURN_IF_ERROR(Stopped());
      Result<bool> pumped = loader_->Pump(kLoadAheadRows);
      if (!pumped.ok()) {
        return FailTask(lease->task, pumped.status());
      }
      complete = *pumped;
    }
    lease->rows = loader_->Finish();
    RETURN_IF_ERROR(Begin(lease.get()));
  }
  RETURN_IF_ERROR(AskAhead());
  return TrainShard(lease.get());
}

Status Worker::AskAhead() {
  ASSIGN_OR_RETURN(MasterLink::Answer answer, master_.Take(false));
  if (answer.kind != MasterLink::Answer::Kind::kTask) {
    return Status();
  }
  SLUICE_CHECK(answer.task.kind == Task::Kind::kTrain, "only training tasks are asked for ahead");
  next_ = std::make_unique<Lease>();
  next_->task = std::move(answer.task);
  next_->rows_read_before = loader_->rows_read();
  load_credit_ = 0;
  return loader_->Start(next_->task.shard);
}

// Interleaves reading with training in the same thread, so that both shards are ready at about the
// same time and the database never waits for long.
Status Worker::LoadAhead(size_t trained_rows) {
  if (next_ == nullptr || loader_->waiting()) {  // the database can be waited for later
    return Status();
  }
  load_credit_ +=
      trained_rows + trained_rows / 4;  // shards differ, and validation rows come on top
  if (load_credit_ < kLoadAheadRows) {
    return Status();
  }
  load_credit_ -= kLoadAheadRows;
  Result<bool> complete = loader_->Pump(kLoadAheadRows);
  return complete.ok() ? Status() : FailTask(next_->task, complete.status());
}

Status Worker::WaitForTheSlowest() {
  while (bounded_) {
    RETURN_IF_ERROR(Stopped());
    ASSIGN_OR_RETURN(const bool may, master_.MayBegin(pushed_));
    if (may) {
      break;
    }
  }
  return Status();
}

// Pushes the lease's next batch, and pulls for the one after it.
Status Worker::PushAndPullNext(const Lease& lease, double weight) {
  const int64_t batch = lease.next;
  const BatchIdentity identity = Identity(lease, batch);
  if (batch + 1 >= lease.end()) {
    RETURN_IF_ERROR(parameters_.Push(identity, weight, view_, gradient_));
    ++pushed_;
    return Status();
  }
  GatherBatch(lease, batch + 1, &next_batch_);
  network_->CollectIds(next_batch_, &next_view_);
  const BatchIdentity next = Identity(lease, batch + 1);
  if (bounded_) {
    // In two: others may wait for this very push.
    RETURN_IF_ERROR(parameters_.Push(identity, weight, view_, gradient_));
    ++pushed_;
    RETURN_IF_ERROR(WaitForTheSlowest());
    RETURN_IF_ERROR(parameters_.Pull(next, Purpose::kStep, &next_view_));
  } else {
    RETURN_IF_ERROR(parameters_.PushAndPull(identity, weight, view_, gradient_, next, &next_view_));
  }
  std::swap(batch_, next_batch_);
  std::swap(view_, next_view_);
  return Status();
}

Status Worker::TrainShard(Lease* lease) {
  if (!lease->done()) {
    GatherBatch(*lease, lease->next, &batch_);
    network_->CollectIds(batch_, &view_);
    Status pulled = WaitForTheSlowest();
    if (pulled.ok()) {
      pulled = parameters_.Pull(Identity(*lease, lease->next), Purpose::kStep, &view_);
    }
    if (!pulled.ok()) {
      return FailTask(lease->task, pulled);
    }
  }
  while (!lease->done()) {
    RETURN_IF_ERROR(Stopped());
    const models::LossSum loss =
        network_->Step(batch_, view_, StepSeed(*lease, lease->next), &gradient_);
    const Status pushed = PushAndPullNext(*lease, loss.weight);
    if (pushed.code() == Code::kAborted) {
      return LeaveToOthers(lease);
    }
    if (!pushed.ok()) {
      return FailTask(lease->task, pushed);
    }
    Count(lease, loss);
    if (TimeToReport()) {
      ASSIGN_OR_RETURN(const bool mine, Report(lease, false));
      if (!mine || lease->report.done) {
        return Status();
      }
    }
    RETURN_IF_ERROR(LoadAhead(batch_.rows));
  }
  return Report(lease, true).status();
}

}  // namespace sluice::elastic
