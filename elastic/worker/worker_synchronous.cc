#include <algorithm>
#include <tuple>

#include "elastic/worker/worker_lease_internal.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {

// Holds one or more lanes of the round and steps them in lockstep: batch t of every lane before
// batch t + 1 of any, since the values for t + 1 exist only when step t has closed.
Status Worker::WorkInLockstep() {
  if (lanes_.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, TakeAndLoad(true));
    if (lease == nullptr) {
      return Status();
    }
    lanes_.push_back(std::move(lease));
    RETURN_IF_ERROR(FillLanes());
  }
  // A lane of a later round, left from a master that did not live to write it down, comes last.
  const auto first =
      std::min_element(lanes_.begin(), lanes_.end(), [](const auto& a, const auto& b) {
        return std::tie(a->task.epoch, a->task.round, a->next) <
               std::tie(b->task.epoch, b->task.round, b->next);
      });
  Lease* lease = first->get();
  bool not_open = false;
  const Status status = StepLane(lease, &not_open);
  if (!status.ok()) {
    return FailTask(lease->task, status);
  }
  if (not_open) {
    // Some lane of this step has nobody: it may be waiting for this very worker.
    ASSIGN_OR_RETURN(std::unique_ptr<Lease> more, TakeAndLoad(true));
    if (more != nullptr) {
      lanes_.push_back(std::move(more));
    }
    return Status();
  }
  const bool done = lease->report.done;
  if (!done && !TimeToReport()) {
    return Status();
  }
  if (done) {
    ASSIGN_OR_RETURN([[maybe_unused]] const bool mine, Report(lease, true));
    lanes_.erase(first);
    return Status();
  }
  for (size_t i = 0; i < lanes_.size();) {
    ASSIGN_OR_RETURN(const bool mine, Report(lanes_[i].get(), false));
    if (mine) {
      ++i;
    } else {
      lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return Status();
}

// Takes this worker's share of the round; the master knows how many there are to share it.
Status Worker::FillLanes() {
  for (;;) {
    ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, TakeAndLoad(false));
    if (lease == nullptr) {
      return Status();
    }
    lanes_.push_back(std::move(lease));
  }
}

Status Worker::StepLane(Lease* lease, bool* not_open) {
  const BatchIdentity identity = Identity(*lease, lease->next);
  if (lease->done()) {
    RETURN_IF_ERROR(parameters_.PushEnd(identity));
    lease->report.done = true;
    return Status();
  }
  GatherBatch(*lease, lease->next, &batch_);
  network_->CollectIds(batch_, &view_);
  const Status pulled = parameters_.Pull(identity, Purpose::kStep, &view_);
  if (pulled.code() == Code::kDeadlineExceeded) {
    *not_open = true;
    return Status();
  }
  RETURN_IF_ERROR(pulled);
  const models::LossSum loss =
      network_->Step(batch_, view_, StepSeed(*lease, lease->next), &gradient_);
  RETURN_IF_ERROR(parameters_.Push(identity, loss.weight, view_, gradient_));
  Count(lease, loss);
  return Status();
}

}  // namespace sluice::elastic
