#include <fmt/core.h>

#include <algorithm>

#include "elastic/master/master.h"
#include "elastic/parameters/lane_tree.h"

// The master of an all-reduce job: it regroups the workers, deals the lanes of a round to
// all of them together, and keeps the ledger by what the newest of them says.
namespace sluice::elastic {

namespace {

Status CheckPosition(const RoundPosition& position) {
  for (const TaskReport& lane : position.lanes) {
    RETURN_IF_ERROR(CheckReport(lane));
  }
  return Status();
}

}  // namespace

bool RoundPosition::Over() const {
  return std::all_of(lanes.begin(), lanes.end(), [](const TaskReport& lane) { return lane.done; });
}

Result<WorldAnswer> Master::Meet(Incarnation worker, const WorldArrival& arrival, TimePoint now) {
  if (finished()) {
    static_cast<void>(pool_.Contact(worker, now));
    return AnswerTo(worker);
  }
  RETURN_IF_ERROR(CheckMember(worker, now));
  RETURN_IF_ERROR(CheckPosition(arrival.position));
  if (!rendezvous_.has_value()) {
    return FailedPrecondition("the workers of this job do not meet: it has parameter servers");
  }
  const Status kept = early_stopping_.CheckKept(arrival.kept, arrival.kept_digest);
  if (!kept.ok()) {
    Abort(kept);
    return kept;
  }
  Rendezvous::Arrival at = arrival.at;
  at.incarnation = worker;
  rendezvous_->Arrive(at, now);
  positions_[worker] = arrival.position;
  Regroup(now);
  return AnswerTo(worker);
}

// When everybody is there: what the newest says counts, and the next round is dealt.
void Master::Regroup(TimePoint now) {
  const int64_t world = rendezvous_->world().id;
  const int64_t beginning = rendezvous_->world().beginning;
  if (!rendezvous_->Convene(now)) {
    return;
  }
  const Rendezvous::World& formed = rendezvous_->world();
  if (formed.beginning != beginning) {
    if (options_.checkpoint_steps > 0) {
      // There is a better place to begin again from than the start.
      LoseParameters(Unavailable("every worker that had the parameters was lost"));
      return;
    }
    BeginAgain();
  }
  if (formed.id != world) {
    DropWorldCut("the workers met anew while it was written", now);
    AddEvent("world_formed",
             fmt::format("{}: {} workers, step {}", formed.id, formed.members.size(),
                         std::max<int64_t>(formed.closed, 0)));
  }
  const Rendezvous::Member& newest = formed.members[formed.source];
  if (newest.closed != Rendezvous::kNoState) {
    rendezvous_->Closed(newest.closed);
    Commit(positions_[newest.incarnation], now);
  }
  while (phase_ == Phase::kTraining) {
    std::optional<Task> task = queue_.Take(kEverybody, now);
    if (!task.has_value()) {
      break;
    }
    round_.push_back(*std::move(task));
  }
}

void Master::BeginAgain() {
  AddEvent("training_begins_again", "every worker that had the parameters was lost");
  queue_ = TaskQueue(options_.queue);
  queue_.TakeOver(term_, {}, TimePoint{});
  journaled_state_.clear();  // the next entry has everything
  phase_ = Phase::kTraining;
  round_.clear();
  meter_.BeginAgain();
  metrics_.clear();
  early_stopping_.Restore({}, {});
}

// Sums count from the start of the round: saying them twice changes nothing.
void Master::Commit(const RoundPosition& position, TimePoint now) {
  if (phase_ != Phase::kTraining || round_.empty() || position.lanes.size() != round_.size() ||
      position.epoch != round_.front().epoch || position.round != round_.front().round) {
    return;
  }
  const int64_t rows = queue_.totals().rows;
  for (const TaskReport& lane : position.lanes) {
    const Result<TaskQueue::Answer> answer = queue_.Report(kEverybody, lane, now);
    if (!answer.ok()) {
      Abort(answer.status());
      return;
    }
  }
  if (queue_.totals().rows > rows) {
    for (const Rendezvous::Member& member : rendezvous_->world().members) {
      pool_.OnCommitted(member.incarnation);
    }
  }
  if (position.Over()) {
    round_.clear();
    Advance(now);
  }
}

WorldAnswer Master::AnswerTo(Incarnation worker) const {
  WorldAnswer answer;
  if (finished()) {
    answer.work = Dismissed() ? WorldAnswer::Work::kFinished : WorldAnswer::Work::kWait;
    return answer;
  }
  if (!rendezvous_->MayGo(worker)) {
    return answer;
  }
  answer.world = rendezvous_->world();
  answer.rank = *rendezvous_->RankOf(worker);
  answer.best = early_stopping_.best().step;
  switch (phase_) {
    case Phase::kTraining:
      answer.work = WorldAnswer::Work::kTrain;
      answer.lanes = round_;
      break;
    case Phase::kEvaluating:
    case Phase::kComparing:
      answer.work = WorldAnswer::Work::kEvaluate;
      break;
    case Phase::kExporting:
      // The oldest; when it dies, the next regroup chooses another one.
      answer.work = answer.rank == 0 ? WorldAnswer::Work::kExport : WorldAnswer::Work::kWait;
      break;
    default:
      break;
  }
  return answer;
}

Result<StepAnswer> Master::ReportStep(Incarnation worker, int64_t world, int64_t closed,
                                      const RoundPosition& position, TimePoint now) {
  StepAnswer answer;
  answer.meet = true;
  if (finished()) {
    return answer;
  }
  RETURN_IF_ERROR(CheckMember(worker, now));
  RETURN_IF_ERROR(CheckPosition(position));
  if (!rendezvous_.has_value()) {
    return FailedPrecondition("this job has no steps of a world: it has parameter servers");
  }
  if (world != rendezvous_->world().id || !rendezvous_->MayGo(worker)) {
    return answer;  // it is left behind, and will notice
  }
  rendezvous_->Closed(closed);
  Commit(position, now);
  answer.meet = rendezvous_->ShouldConvene();
  if (world_cut_.has_value() && !world_cut_->taken && phase_ == Phase::kTraining) {
    // The queue is where this worker is.
    world_cut_->taken = true;
    SaveCut(&world_cut_->manifest);
    answer.draft = world_cut_->draft.path;
  }
  CheckpointIfDue(now);
  return answer;
}

Status Master::Deliver(Incarnation worker, models::NetworkWeights weights) {
  if (!rendezvous_.has_value()) {
    return FailedPrecondition("the parameter servers of this job have its weights");
  }
  if (phase_ == Phase::kExporting && rendezvous_->RankOf(worker) == 0U) {
    weights_ = std::move(weights);
    phase_ = Phase::kSucceeded;
  }
  return Status();
}

// True: a shard has failed too often. `task` 0: whatever the worker was computing.
bool Master::ChargeLanes(Incarnation worker, int64_t task, const std::string& why) {
  const std::optional<size_t> rank = rendezvous_->RankOf(worker);
  if (!rank.has_value()) {
    return false;
  }
  const auto [begin, end] =
      LanesOf(static_cast<uint32_t>(round_.size()), *rank, rendezvous_->world().members.size());
  bool give_up = false;
  for (uint32_t lane = begin; lane < end; ++lane) {
    if (task == 0 || round_[lane].id == task) {
      AddEvent("task_failed", fmt::format("shard {}: {}", round_[lane].shard, why));
      give_up = queue_.ChargeFailure(worker, round_[lane].shard) || give_up;
    }
  }
  return give_up;
}

}  // namespace sluice::elastic
