#include <fmt/core.h>

#include <algorithm>

#include "elastic/master/journal.pb.h"
#include "elastic/master/master.h"
#include "elastic/queue/queue_codec_internal.h"

// When a job's checkpoints begin, which state of a master they contain, and how another master
// resumes from them.
namespace sluice::elastic {
namespace {

// Incarnations of the new job's workers are above all that the old job may have given out after the
// cut.
constexpr uint64_t kIncarnationsOfAJob = uint64_t{1} << 32;

}  // namespace

void Master::CheckpointIfDue(TimePoint now) {
  if (!finished() && checkpoints_.Begin(steps(), now)) {
    BeginCheckpoint();
  }
}

void Master::BeginCheckpoint() {
  outbox_.Add({Action::Kind::kCheckpoint, "", kNoIncarnation});
}

void Master::OnCheckpoint(TimePoint now) {
  checkpoints_.Over(now);
  if (suspension_.last_checkpoint()) {
    EndSuspended();
  } else {
    SuspendIfDue(now);
  }
}

void Master::Suspend(TimePoint now) {
  suspension_.Request(now);
  SuspendIfDue(now);
}

void Master::SuspendIfDue(TimePoint now) {
  if (!suspension_.requested() || finished()) {
    return;
  }
  if (suspension_.Overdue(now)) {
    outbox_.AddEvent(
        "checkpoint_failed",
        fmt::format("none could be written for {} seconds: the job continues from the one before",
                    Suspension::kLongestSeconds));
    EndSuspended();
  } else if (!suspension_.last_checkpoint() && checkpoints_.BeginNow(steps(), now)) {
    suspension_.OnLastCheckpoint();
    BeginCheckpoint();
  }
}

void Master::EndSuspended() {
  if (!finished()) {
    running_phase_ = phase_;
    Abort(Status(Code::kAborted, "the training is suspended"));
  }
}

void Master::SaveCut(CheckpointManifest* manifest) const {
  CutSave save;
  QueueCodec::Write(queue_.state(), save.mutable_queue());
  SaveState(save.mutable_state());
  manifest->queue_state = save.SerializeAsString();  // empty: it exceeds the size of a message
  manifest->steps = queue_.steps();
  manifest->epoch = queue_.epoch();
}

Result<std::unique_ptr<Master>> Master::Resume(const Options& options, const std::string& cut,
                                               TimePoint now) {
  CutSave save;
  if (!save.ParseFromString(cut)) {
    return Internal("the position of the queue in a checkpoint cannot be read");
  }
  auto master = std::make_unique<Master>(options, now);
  RETURN_IF_ERROR(master->result_);
  ASSIGN_OR_RETURN(QueueState state, QueueCodec::Read(options.queue, save.queue(), now));
  state.ForgetReads();
  master->queue_ = TaskQueue(std::move(state));
  RETURN_IF_ERROR(master->RestoreState(save.state(), now));
  master->pool_.Restore(std::max(save.state().started(), options.workers_before),
                        std::max(Incarnation(save.state().next_incarnation() + kIncarnationsOfAJob),
                                 options.first_incarnation),
                        {});
  master->staleness_.Await({});
  if (options.all_reduce.has_value()) {
    // The round stays, but its members are gone.
    const std::vector<Task> lanes = master->rounds_->lanes();
    master->rounds_.emplace(*options.all_reduce, lanes);
  }
  // Tasks and attempts above those of the old job: servers refuse older ones, and tell how far they
  // are with those handed out before. All members of a world hold its round together.
  const Term term = master->queue_.state().term() + 1;
  std::vector<Incarnation> holders;
  if (options.all_reduce.has_value()) {
    holders.push_back(kAllWorkers);
  }
  master->queue_.TakeOver(term, holders, now);
  master->next_evaluation_task_ = FirstEvaluationTask(term);
  master->meter_.StartFrom(master->queue_.totals(), now);
  master->checkpoints_.StartFrom(master->queue_.steps());
  master->outbox_.AddEvent(
      "resumed",
      fmt::format("at step {}, epoch {}, {} of {} shards done", master->queue_.steps(),
                  master->queue_.epoch(), master->queue_.shards_done(), master->queue_.shards()));
  if (master->phase_ == Phase::kEvaluating) {
    master->evaluation_.Start(master->queue_.epoch());
  } else if (master->phase_ == Phase::kKeeping) {
    master->OrderKeep();
  } else if (master->phase_ == Phase::kComparing) {
    master->StartComparing();
  }
  master->Advance(now);
  return master;
}

void Master::LoseParameters(const Status& cause) {
  parameters_lost_ = true;
  Abort(cause);
}

Status Master::Written(Incarnation worker, const std::string& draft,
                       const Result<CheckpointManifest::File>& file, TimePoint now) {
  RETURN_IF_ERROR(CheckMember(worker, now));
  if (finished()) {
    return Status();
  }
  switch (world_checkpoint_.OnWritten(draft, file)) {
    case WorldCheckpoint::Written::kComplete:
      outbox_.Add({Action::Kind::kCommitCheckpoint, "", kNoIncarnation});
      break;
    case WorldCheckpoint::Written::kFailed:
      DropWorldCheckpoint(file.status().message(), now);
      break;
    case WorldCheckpoint::Written::kObsolete:
      break;
  }
  return Status();
}

void Master::DropWorldCheckpoint(const std::string& why, TimePoint now) {
  if (world_checkpoint_.Drop()) {
    outbox_.AddEvent("checkpoint_failed", why);
    OnCheckpoint(now);
  }
}

}  // namespace sluice::elastic
