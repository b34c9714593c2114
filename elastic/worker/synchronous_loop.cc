#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "elastic/worker/training_loop_internal.h"

// One or more lanes of the round are held and stepped in lockstep: batch t of every lane before
// batch t + 1 of any, since the values for t + 1 exist only when step t has closed.
namespace sluice::elastic {
namespace {

class SynchronousLoop final : public TrainingLoop {
 public:
  explicit SynchronousLoop(WorkerTasks& tasks)
      : tasks_(tasks), network_(tasks.network()), parameters_(tasks.parameters()) {}
  Status Advance() override;

 private:
  Status FillLanes();
  Status StepLane(Lease* lease, bool* not_open);
  Status PullFor(const Lease& lease);
  Status PushAndPullNext(const Lease& lease, double weight);
  struct Coming {
    const Lease* lease;
    BatchIndex batch;
  };
  Coming AfterBatchOf(const Lease& lease) const;
  Status ReportAll();

  WorkerTasks& tasks_;
  models::Network& network_;
  ParameterLink& parameters_;
  std::vector<std::unique_ptr<Lease>> lanes_;
  models::FeatureBatch batch_, next_batch_;
  models::ParameterView view_, next_view_;
  models::Gradient gradient_;
  std::optional<TaskId> pulled_;  // the lane whose next batch is in batch_ and view_ already
};

Status SynchronousLoop::Advance() {
  if (lanes_.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, tasks_.Take(true));
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
    return tasks_.Fail(lease->task, status);
  }
  if (not_open) {
    // Some lane of this step has nobody: it may be waiting for this very worker.
    ASSIGN_OR_RETURN(std::unique_ptr<Lease> more, tasks_.Take(true));
    if (more != nullptr) {
      lanes_.push_back(std::move(more));
    }
    return Status();
  }
  if (lease->report.done) {
    RETURN_IF_ERROR(tasks_.Report(lease, true).status());
    lanes_.erase(first);
    return Status();
  }
  return tasks_.TimeToReport() ? ReportAll() : Status();
}

// Takes this worker's share of the round; the master knows how many there are to share it.
Status SynchronousLoop::FillLanes() {
  for (;;) {
    ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, tasks_.Take(false));
    if (lease == nullptr) {
      return Status();
    }
    lanes_.push_back(std::move(lease));
  }
}

Status SynchronousLoop::StepLane(Lease* lease, bool* not_open) {
  const BatchIdentity identity = lease->Identity(lease->next);
  if (lease->done()) {
    RETURN_IF_ERROR(parameters_.PushEnd(identity));
    lease->report.done = true;
    return Status();
  }
  const Status pulled = PullFor(*lease);
  if (pulled.code() == Code::kDeadlineExceeded) {
    *not_open = true;
    return Status();
  }
  RETURN_IF_ERROR(pulled);
  const models::LossSum loss = network_.Step(batch_, view_, lease->StepSeed(), &gradient_);
  RETURN_IF_ERROR(PushAndPullNext(*lease, loss.weight));
  lease->Count(loss);
  return Status();
}

Status SynchronousLoop::PullFor(const Lease& lease) {
  if (std::exchange(pulled_, std::nullopt) == lease.task.id) {
    return Status();
  }
  lease.Gather(lease.next, &batch_);
  network_.CollectIds(batch_, &view_);
  return parameters_.Pull(lease.Identity(lease.next), Purpose::kStep, &view_);
}

// Pushes the lane's batch, and pulls for the one that comes next, in one exchange. That may be of
// the next step, which opens when all lanes of this one are there.
Status SynchronousLoop::PushAndPullNext(const Lease& lease, double weight) {
  const BatchIdentity identity = lease.Identity(lease.next);
  const Coming coming = AfterBatchOf(lease);
  if (coming.batch >= coming.lease->end()) {
    return parameters_.Push(identity, weight, view_, gradient_);
  }
  coming.lease->Gather(coming.batch, &next_batch_);
  network_.CollectIds(next_batch_, &next_view_);
  const Status done = parameters_.PushAndPull(identity, weight, view_, gradient_,
                                              coming.lease->Identity(coming.batch), &next_view_);
  if (done.code() == Code::kDeadlineExceeded) {
    return Status();  // it is pushed, and the step is not open yet
  }
  RETURN_IF_ERROR(done);
  std::swap(batch_, next_batch_);
  std::swap(view_, next_view_);
  pulled_ = coming.lease->task.id;
  return Status();
}

// Which lane is stepped after this one's batch.
SynchronousLoop::Coming SynchronousLoop::AfterBatchOf(const Lease& lease) const {
  const auto batch = [&](const Lease& each) { return &each == &lease ? each.next + 1 : each.next; };
  const auto first =
      std::min_element(lanes_.begin(), lanes_.end(), [&](const auto& left, const auto& right) {
        return std::make_tuple(left->task.epoch, left->task.round, batch(*left)) <
               std::make_tuple(right->task.epoch, right->task.round, batch(*right));
      });
  return {first->get(), batch(**first)};
}

// Lanes that are someone else's now are dropped.
Status SynchronousLoop::ReportAll() {
  for (size_t i = 0; i < lanes_.size();) {
    ASSIGN_OR_RETURN(const bool mine, tasks_.Report(lanes_[i].get(), false));
    if (mine) {
      ++i;
    } else {
      lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return Status();
}

}  // namespace

std::unique_ptr<TrainingLoop> MakeSynchronousLoop(WorkerTasks& tasks) {
  return std::make_unique<SynchronousLoop>(tasks);
}

}  // namespace sluice::elastic
