#include <fmt/core.h>

#include <algorithm>

#include "elastic/fleet/share_reason.h"
#include "elastic/master/master.h"

// The master of an all-reduce job: it regroups the workers, deals the lanes of a round to all of
// them together, and keeps the ledger by the reports of the newest of them.
namespace sluice::elastic {

namespace {

Status CheckPosition(const RoundPosition& position) {
  for (const TaskReport& lane : position.lanes) {
    RETURN_IF_ERROR(CheckReport(lane));
  }
  return Status();
}

}  // namespace

Result<WorldAnswer> Master::Regroup(Incarnation worker, const WorldArrival& arrival,
                                    TimePoint now) {
  if (finished()) {
    static_cast<void>(pool_.Contact(worker, now));
    return AnswerTo(worker);
  }
  RETURN_IF_ERROR(CheckMember(worker, now));
  RETURN_IF_ERROR(CheckPosition(arrival.position));
  if (!rounds_.has_value()) {
    return FailedPrecondition("the workers of this job do not regroup: it has parameter servers");
  }
  const Status kept = early_stopping_.CheckKept(arrival.kept, arrival.kept_digest);
  if (!kept.ok()) {
    Abort(kept);
    return kept;
  }
  Rendezvous::Arrival at = arrival.at;
  at.incarnation = worker;
  rounds_->Arrive(at, arrival.position, now);
  TryRegroup(now);
  return AnswerTo(worker);
}

// When all members have arrived: the newest one's position counts, and the next round is dealt.
void Master::TryRegroup(TimePoint now) {
  const std::optional<AllReduceRounds::Regrouped> regrouped = rounds_->Regroup(now);
  if (!regrouped.has_value()) {
    return;
  }
  if (regrouped->begins_again) {
    if (options_.checkpoint_steps > 0) {
      // A checkpoint may be a better place to restart from than the beginning.
      LoseParameters(Unavailable("every worker that had the parameters was lost"));
      return;
    }
    BeginAgain();
  }
  if (regrouped->new_world) {
    const Rendezvous::World& formed = rounds_->world();
    DropWorldCheckpoint("the workers regrouped while it was written", now);
    outbox_.AddEvent("world_formed",
                     fmt::format("{}: {}, step {}", formed.id,
                                 CountWorkers(static_cast<int64_t>(formed.members.size())),
                                 std::max<int64_t>(formed.closed, 0)));
  }
  if (const std::optional<RoundPosition> newest = rounds_->CloseNewest()) {
    Commit(*newest, now);
  }
  while (phase_ == Phase::kTraining) {
    std::optional<Task> task = queue_.Take(kAllWorkers, now);
    if (!task.has_value()) {
      break;
    }
    rounds_->Deal(*std::move(task));
  }
}

void Master::BeginAgain() {
  outbox_.AddEvent("training_begins_again", "every worker that had the parameters was lost");
  queue_ = TaskQueue(options_.queue);
  queue_.TakeOver(term_, {}, TimePoint{});
  journal_.StartOver();
  phase_ = Phase::kTraining;
  rounds_->EndRound();
  meter_.BeginAgain();
  validation_.ForgetMetrics();
  early_stopping_.Restore({}, {});
}

// Sums count from the start of the round: repeating a report changes nothing.
void Master::Commit(const RoundPosition& position, TimePoint now) {
  if (phase_ != Phase::kTraining || !rounds_->IsOf(position)) {
    return;
  }
  const int64_t rows = queue_.totals().rows;
  for (const TaskReport& lane : position.lanes) {
    const Result<TaskQueue::Answer> answer = queue_.Report(kAllWorkers, lane, now);
    if (!answer.ok()) {
      Abort(answer.status());
      return;
    }
  }
  if (queue_.totals().rows > rows) {
    for (const Rendezvous::Member& member : rounds_->world().members) {
      pool_.OnCommitted(member.incarnation);
    }
  }
  if (position.Over()) {
    rounds_->EndRound();
    Advance(now);
  }
}

WorldAnswer Master::AnswerTo(Incarnation worker) const {
  WorldAnswer answer;
  if (finished()) {
    answer.work = Dismissed() ? WorldAnswer::Work::kFinished : WorldAnswer::Work::kWait;
    return answer;
  }
  if (!rounds_->rendezvous().MayGo(worker)) {
    return answer;
  }
  answer.world = rounds_->world();
  answer.rank = *rounds_->rendezvous().RankOf(worker);
  answer.best = early_stopping_.best().step;
  switch (phase_) {
    case Phase::kTraining:
      answer.work = WorldAnswer::Work::kTrain;
      answer.lanes = rounds_->lanes();
      for (Task& lane : answer.lanes) {
        lane.rate_cuts = RateCuts();
      }
      break;
    case Phase::kEvaluating:
    case Phase::kComparing:
      answer.work = WorldAnswer::Work::kEvaluate;
      break;
    case Phase::kExporting:
      // The oldest one; when it dies, the next regroup chooses another.
      answer.work =
          answer.rank == Rank::First() ? WorldAnswer::Work::kExport : WorldAnswer::Work::kWait;
      break;
    default:
      break;
  }
  return answer;
}

Result<StepAnswer> Master::ReportStep(Incarnation worker, WorldId world, int64_t closed,
                                      const RoundPosition& position, TimePoint now) {
  StepAnswer answer;
  answer.regroup = true;
  if (finished()) {
    return answer;
  }
  RETURN_IF_ERROR(CheckMember(worker, now));
  RETURN_IF_ERROR(CheckPosition(position));
  if (!rounds_.has_value()) {
    return FailedPrecondition("this job has no steps of a world: it has parameter servers");
  }
  if (world != rounds_->world().id || !rounds_->rendezvous().MayGo(worker)) {
    return answer;  // it is left behind, and will notice that
  }
  rounds_->Closed(closed);
  Commit(position, now);
  answer.regroup = rounds_->rendezvous().ShouldRegroup();
  if (world_checkpoint_.offered() && phase_ == Phase::kTraining) {
    // The queue is at this worker's position.
    CheckpointManifest manifest;
    SaveCut(&manifest);
    answer.draft = world_checkpoint_.Begin(std::move(manifest));
  }
  CheckpointIfDue(now);
  return answer;
}

Status Master::Deliver(Incarnation worker, models::NetworkWeights weights) {
  if (!rounds_.has_value()) {
    return FailedPrecondition("the parameter servers of this job have its weights");
  }
  if (phase_ == Phase::kExporting && rounds_->rendezvous().RankOf(worker) == Rank::First()) {
    handover_.Deliver(std::move(weights));
    phase_ = Phase::kSucceeded;
  }
  return Status();
}

// True: a shard has failed too often. `task` none: whatever the worker was computing.
bool Master::ChargeLanes(Incarnation worker, TaskId task, const std::string& why) {
  bool give_up = false;
  for (const Task& lane : rounds_->LanesOfMember(worker)) {
    if (task == kNoTask || lane.id == task) {
      outbox_.AddEvent("task_failed", fmt::format("shard {}: {}", lane.shard, why));
      give_up = queue_.ChargeFailure(worker, lane.shard) || give_up;
    }
  }
  return give_up;
}

}  // namespace sluice::elastic
