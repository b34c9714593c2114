#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "elastic/worker/lane_group_internal.h"
#include "elastic/worker/training_loop_internal.h"

// Steps one or more lanes of the round together: batch t of every lane before batch t + 1 of any,
// since the values for t + 1 exist only when step t has closed. The lanes' pushes for a step and
// pulls for the next are one exchange.
namespace sluice::elastic {
namespace {

class SynchronousLoop final : public TrainingLoop {
 public:
  explicit SynchronousLoop(WorkerTasks& tasks)
      : tasks_(tasks),
        network_(tasks.network()),
        parameters_(tasks.parameters()),
        group_(network_),
        coming_(network_) {}
  Status Advance() override;

 private:
  Status FillLanes();
  Status EndLane(Lease* lease);
  Result<bool> StepGroup();
  bool IsPulled() const;
  Status PullGroup();
  Status PushAndPullNext();
  void Form(const LaneGroup* pushed, LaneGroup* group) const;
  Status ReportAll();

  Lease* Held(TaskId task) const {
    const auto found = std::find_if(lanes_.begin(), lanes_.end(),
                                    [task](const auto& lane) { return lane->task.id == task; });
    return found == lanes_.end() ? nullptr : found->get();
  }
  // The lane's next batch; after a push of this group, the one after it.
  static BatchIndex NextOf(const Lease& lease, const LaneGroup* pushed) {
    return pushed != nullptr && pushed->Holds(lease.task.id) ? lease.next + 1 : lease.next;
  }
  static auto StepOf(const Lease& lease, const LaneGroup* pushed) {
    return std::make_tuple(lease.task.epoch, lease.task.round, NextOf(lease, pushed));
  }
  // A lane of a later round, left over from a master that died before it could record it, comes
  // last.
  Lease* First(const LaneGroup* pushed) const {
    return std::min_element(lanes_.begin(), lanes_.end(),
                            [pushed](const auto& a, const auto& b) {
                              return StepOf(*a, pushed) < StepOf(*b, pushed);
                            })
        ->get();
  }

  WorkerTasks& tasks_;
  models::Network& network_;
  ParameterLink& parameters_;
  std::vector<std::unique_ptr<Lease>> lanes_;
  LaneGroup group_;      // is stepped next
  LaneGroup coming_;     // after it
  bool pulled_ = false;  // the values for group_ have been pulled
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
  Lease* first = First(nullptr);
  if (first->done()) {
    return EndLane(first);
  }
  const Result<bool> stepped = StepGroup();
  if (!stepped.ok()) {
    return tasks_.Fail(first->task, stepped.status());
  }
  if (!*stepped) {
    // Some lane of this step has no holder: it may be waiting for this very worker.
    ASSIGN_OR_RETURN(std::unique_ptr<Lease> more, tasks_.Take(true));
    if (more != nullptr) {
      lanes_.push_back(std::move(more));
    }
    return Status();
  }
  return tasks_.TimeToReport() ? ReportAll() : Status();
}

// Takes this worker's share of the round; the master knows how many workers share it.
Status SynchronousLoop::FillLanes() {
  for (;;) {
    ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, tasks_.Take(false));
    if (lease == nullptr) {
      return Status();
    }
    lanes_.push_back(std::move(lease));
  }
}

// The lane has no batch for the coming step.
Status SynchronousLoop::EndLane(Lease* lease) {
  const Status ended = [&] {
    const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
    return parameters_.PushEnd(lease->Identity(lease->next));
  }();
  if (!ended.ok()) {
    return tasks_.Fail(lease->task, ended);
  }
  lease->report.done = true;
  RETURN_IF_ERROR(tasks_.Report(lease, true).status());
  std::erase_if(lanes_, [lease](const auto& lane) { return lane.get() == lease; });
  return Status();
}

// False: the step is not open yet.
Result<bool> SynchronousLoop::StepGroup() {
  const Status pulled = PullGroup();
  if (pulled.code() == Code::kDeadlineExceeded) {
    return false;
  }
  RETURN_IF_ERROR(pulled);
  std::vector<std::pair<Lease*, models::LossSum>> stepped;
  for (size_t i = 0; i < group_.size(); ++i) {
    LaneGroup::Lane& lane = group_.lane(i);
    Lease* lease = Held(lane.task);
    const PhaseScope learning(tasks_.clock(), Phase::kLearning);
    lane.loss = network_.Step(lane.batch, lane.view, lease->StepSeed(), &lane.gradient);
    stepped.emplace_back(lease, lane.loss);
  }
  RETURN_IF_ERROR(PushAndPullNext());
  for (const auto& [lease, loss] : stepped) {
    RETURN_IF_ERROR(lease->Count(loss));
  }
  return true;
}

// Lanes may have changed since the pull.
bool SynchronousLoop::IsPulled() const {
  const auto step = StepOf(*First(nullptr), nullptr);
  bool same = pulled_;
  for (size_t i = 0; i < group_.size(); ++i) {
    const Lease* lease = Held(group_.lane(i).task);
    same = same && lease != nullptr && !lease->done() &&
           lease->next == group_.lane(i).identity.batch && StepOf(*lease, nullptr) == step;
  }
  return same;
}

Status SynchronousLoop::PullGroup() {
  if (IsPulled()) {
    return Status();
  }
  pulled_ = false;
  Form(nullptr, &group_);
  const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
  RETURN_IF_ERROR(parameters_.Pull(group_.lane(0).identity, Purpose::kStep, group_.CombinedView()));
  group_.Scatter();
  pulled_ = true;
  return Status();
}

// Pushes the group's batches, and pulls for the following ones, in one exchange. These may belong
// to the next step, which opens when all lanes of this one have been pushed.
Status SynchronousLoop::PushAndPullNext() {
  pulled_ = false;
  Form(&group_, &coming_);
  const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
  if (coming_.empty()) {
    return parameters_.PushAll(group_.Pushes());
  }
  const Status done = parameters_.PushAndPull(group_.Pushes(), coming_.lane(0).identity,
                                              coming_.CombinedView(), [] {});
  if (done.code() == Code::kDeadlineExceeded) {
    return Status();  // all is pushed, and the step is not open yet
  }
  RETURN_IF_ERROR(done);
  coming_.Scatter();
  std::swap(group_, coming_);
  pulled_ = true;
  return Status();
}

// The lanes at the earliest unfinished step, as many as one exchange takes. None: the first of them
// is at its end.
void SynchronousLoop::Form(const LaneGroup* pushed, LaneGroup* group) const {
  group->Clear();
  const Lease* first = First(pushed);
  if (NextOf(*first, pushed) >= first->end()) {
    return;
  }
  for (const std::unique_ptr<Lease>& lane : lanes_) {
    const BatchIndex next = NextOf(*lane, pushed);
    if (StepOf(*lane, pushed) == StepOf(*first, pushed) && next < lane->end() && !group->full()) {
      group->Add(*lane, next);
    }
  }
}

// Drops lanes that now belong to another worker.
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
