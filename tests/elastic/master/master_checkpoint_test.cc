#include <gtest/gtest.h>

#include <algorithm>

#include "tests/elastic/master/master_steps.h"

// When a master requests a checkpoint, and how another one continues from the cut. Shards have four
// batches of 25 rows.
namespace sluice::elastic {
namespace {

class MasterCheckpoint : public MasterTest {
 protected:
  MasterCheckpoint() { options_.checkpoint_steps = 4; }
  void DoShard(double now) {
    const std::optional<Task> task = Take(Worker(0), now);
    ASSERT_TRUE(task.has_value());
    ASSERT_TRUE(master_->Report(Worker(0), Done(*task), At(now)).ok());
  }
  // Whether one was requested since the last call.
  bool Begun() {
    kept_.clear();
    Collect();
    return std::any_of(kept_.begin(), kept_.end(), [](const Master::Action& action) {
      return action.kind == Master::Action::Kind::kCheckpoint;
    });
  }
  // The job is killed; the same statement continues from the current checkpoint.
  void Resume() {
    CheckpointManifest manifest;
    master_->SaveCut(&manifest);
    Result<std::unique_ptr<Master>> other = Master::Resume(options_, manifest.queue_state, At(50));
    ASSERT_TRUE(other.ok()) << other.status().ToString();
    master_ = std::move(*other);
    started_.clear();
    kept_.clear();
    master_->Start(At(50));
    Collect();
    ASSERT_EQ(started_.size(), 2U);
  }
};

TEST_F(MasterCheckpoint, IsBegunAfterSoManyStepsAndAPause) {
  options_.queue.shards = 20;
  options_.checkpoint_steps = 8;
  Start();
  DoShard(1);
  EXPECT_FALSE(Begun());
  DoShard(1);
  EXPECT_TRUE(Begun());
  DoShard(1);
  DoShard(2);
  EXPECT_FALSE(Begun()) << "one at a time";
  master_->OnCheckpoint(At(11));  // it has taken ten seconds
  DoShard(12);
  EXPECT_FALSE(Begun()) << "and the next one comes after ten seconds more";
  DoShard(22);
  EXPECT_TRUE(Begun());
  master_->OnCheckpoint(At(22));
  DoShard(30);
  EXPECT_FALSE(Begun()) << "steps are counted from the last one on";
  DoShard(30);
  EXPECT_TRUE(Begun());
}

TEST_F(MasterCheckpoint, P16_ASuccessorHandsOutWhatWasOpenAboveTheOldTasks) {
  options_.checkpoint_steps = 8;
  Start();
  DoShard(1);
  const Task open = *Take(Worker(0));
  const Incarnation last = Worker(1);
  Resume();
  EXPECT_EQ(Count("resumed"), 1);
  EXPECT_GT(Worker(0), Incarnation(last.value() + 1'000'000))
      << "more may have been started after the cut";
  const Task again = *Take(Worker(0), 51);
  EXPECT_EQ(again.shard, open.shard) << "what was begun comes first";
  EXPECT_GT(again.attempt, open.attempt + 1'000);
  EXPECT_GT(again.id, TaskId(open.id.value() + 1'000));
}

TEST_F(MasterCheckpoint, TheStepsOfTheCutAreOnTheDisk) {
  options_.checkpoint_steps = 8;
  Start();
  DoShard(1);
  DoShard(1);
  EXPECT_TRUE(Begun());
  Resume();
  DoShard(51);
  EXPECT_FALSE(Begun()) << "four steps after the one that it goes on from";
  DoShard(51);
  EXPECT_TRUE(Begun());
}

TEST_F(MasterCheckpoint, NobodyWaitsForTheDeadWorkersOfTheCut) {
  options_.staleness = 2;
  Start();
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Take(Worker(i)).has_value());
    ASSERT_TRUE(*master_->MayBegin(Worker(i), 0, At(1)));
  }
  Resume();
  ASSERT_TRUE(Take(Worker(0), 51).has_value());
  for (int64_t pushed = 0; pushed < 4; ++pushed) {
    EXPECT_TRUE(*master_->MayBegin(Worker(0), pushed, At(51))) << pushed;
  }
}

TEST_F(MasterCheckpoint, SuspensionWaitsForACheckpointOfItsOwn) {
  options_.queue.shards = 20;
  Start();
  DoShard(1);
  ASSERT_TRUE(Begun());
  master_->Suspend(At(2));
  EXPECT_FALSE(Begun()) << "one is under way";
  master_->OnCheckpoint(At(3));
  EXPECT_FALSE(master_->finished()) << "what was done since it began would be lost";
  EXPECT_TRUE(Begun());
  master_->OnCheckpoint(At(4));
  EXPECT_TRUE(master_->suspended());
  EXPECT_EQ(master_->result().code(), Code::kAborted);
}

TEST_F(MasterCheckpoint, ASuspensionWhoseCheckpointIsNeverWrittenEnds) {
  Start();
  master_->Suspend(At(2));
  EXPECT_TRUE(Begun());
  master_->Tick(At(1 + Suspension::kLongestSeconds));
  EXPECT_FALSE(master_->suspended());
  master_->Tick(At(2 + Suspension::kLongestSeconds));
  EXPECT_TRUE(master_->suspended());
}

// It dies before its row says that it is suspended: another master has to do it all again.
TEST_F(MasterCheckpoint, TheJournalOfASuspendedJobGoesOn) {
  options_.queue.journal = true;
  options_.checkpoint_steps = 100;
  Start();
  DoShard(1);
  master_->Suspend(At(2));
  master_->OnCheckpoint(At(3));
  ASSERT_TRUE(master_->suspended());
  const std::string entry = *master_->TakeJournal();
  const auto next = Master::TakeOver(options_, Term(2), {entry}, {}, At(4));
  ASSERT_TRUE(next.ok()) << next.status().ToString();
  EXPECT_FALSE((*next)->finished());
  EXPECT_FALSE((*next)->suspended());
}

class MasterComparison : public MasterCheckpoint {
 protected:
  // One epoch of three shards with checksums 1, 2, 3; the first was done before the checkpoint.
  MasterComparison() {
    options_.queue.shards = 3;
    options_.queue.epochs = 1;
  }
  void ReadAndTrain(double now) {
    const std::optional<Task> task = Take(Worker(0), now);
    ASSERT_TRUE(task.has_value());
    ASSERT_EQ(task->kind, Task::Kind::kTrain);
    TaskReport report = Done(*task);
    report.checksum = task->shard.index() + 1;
    ASSERT_TRUE(master_->Report(Worker(0), report, At(now)).ok());
    last_ = task->shard;
  }
  // The requests after all has been trained.
  std::optional<Task> TrainAcrossACheckpoint() {
    started_.clear();
    Start();
    ReadAndTrain(1);
    before_ = last_;
    Resume();
    ReadAndTrain(51);
    ReadAndTrain(51);
    return Take(Worker(0), 52);
  }
  Status Answer(const Task& task, uint64_t checksum) {
    TaskReport report;
    report.task = task.id;
    report.done = true;
    report.checksums = {checksum};
    return master_->Report(Worker(0), report, At(53)).status();
  }
  ShardId last_, before_;
};

TEST_F(MasterComparison, RowsThatAreNotReadAgainAreComparedBeforeTheJobEnds) {
  const std::optional<Task> task = TrainAcrossACheckpoint();
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->kind, Task::Kind::kCompare);
  EXPECT_EQ(task->shards, std::vector<ShardId>{before_}) << "the others have been read again";
  EXPECT_FALSE(master_->finished());
  ASSERT_TRUE(Answer(*task, before_.index() + 1).ok());
  EXPECT_TRUE(master_->finished());
  EXPECT_TRUE(master_->result().ok()) << master_->result().ToString();
}

TEST_F(MasterComparison, OtherRowsThanThoseOfTheCheckpointEndTheJob) {
  for (const uint64_t now : {uint64_t{77}, uint64_t{0}}) {  // 0: there are none left
    const std::optional<Task> task = TrainAcrossACheckpoint();
    ASSERT_TRUE(task.has_value());
    EXPECT_FALSE(Answer(*task, now).ok());
    ASSERT_TRUE(master_->finished());
    EXPECT_EQ(master_->result().code(), Code::kAborted);
    EXPECT_EQ(master_->result().diagnostics().front().sqlstate, "40001");
  }
}

TEST_F(MasterComparison, IsBegunAgainByAMasterThatTakesOver) {
  options_.queue.journal = true;
  const std::optional<Task> task = TrainAcrossACheckpoint();
  ASSERT_TRUE(task.has_value());
  const std::vector<std::string> journal = {*master_->TakeJournal()};
  const std::string alive = started_[0].name;
  Result<std::unique_ptr<Master>> other =
      Master::TakeOver(options_, Term(2), journal, {alive}, At(60));
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  master_ = std::move(*other);
  const std::optional<Task> again = Take(Worker(0), 61);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->kind, Task::Kind::kCompare);
  EXPECT_EQ(again->shards, task->shards);
}

TEST_F(MasterCheckpoint, E2_AnEvaluationAtTheCutIsBegunAgain) {
  options_.evaluation_shards = 4;
  Start();
  for (int shard = 0; shard < 4; ++shard) {
    DoShard(1);
  }
  const std::optional<Task> first = Take(Worker(0));
  ASSERT_TRUE(first.has_value());
  const Task evaluation = *first;
  ASSERT_EQ(evaluation.kind, Task::Kind::kEvaluate);
  Resume();
  const std::optional<Task> again = Take(Worker(0), 51);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->kind, Task::Kind::kEvaluate);
  EXPECT_LT(again->id, TaskId(evaluation.id.value() - 1'000))
      << "an old report is not taken for a new one";
}

TEST_F(MasterCheckpoint, E6_WeightsThatWereToBeKeptAreKeptAfterTheCut) {
  options_.patience = 1;
  options_.metric = "loss";
  Start();
  FinishEpoch(Worker(0));
  Resume();
  ASSERT_FALSE(kept_.empty());
  EXPECT_EQ(kept_.back().kind, Master::Action::Kind::kKeepWeights);
  EXPECT_FALSE(Take(Worker(0), 51).has_value()) << "before that nobody trains on";
  master_->OnWeightsKept("digest", At(51));
  EXPECT_TRUE(Take(Worker(0), 51).has_value());
}

class AllReduceCheckpoint : public MasterCheckpoint {
 protected:
  AllReduceCheckpoint() {
    options_.queue.lanes = 2;
    options_.checkpoint_steps = 1;
    Rendezvous::Options& group = options_.all_reduce.emplace();
    group.expected_members = 2;
  }
  // A world whose rank 0 is writing into draft `a`.
  void BeginToWrite() {
    Start();
    Regroup(0, Rendezvous::kNoState, {}, kNoGeneration, kNoWorld);
    world_ = Regroup(1, Rendezvous::kNoState, {}, kNoGeneration, kNoWorld);
    ASSERT_EQ(world_.work, WorldAnswer::Work::kTrain);
    ASSERT_TRUE(Step(1).draft.empty());
    ASSERT_TRUE(Begun());
    master_->world_checkpoint().Offer({1, "a"});
    ASSERT_EQ(Step(2).draft, "a");
  }
  StepAnswer Step(int64_t step) {
    return master_
        ->ReportStep(Worker(0), world_.world.id, step, After(world_.lanes, step, false), At(3))
        .value();
  }
  bool Committed() {
    kept_.clear();
    Collect();
    return !kept_.empty() && kept_.back().kind == Master::Action::Kind::kCommitCheckpoint;
  }
  WorldAnswer world_;
};

TEST_F(AllReduceCheckpoint, IsCommittedWhenItsDraftIsWritten) {
  BeginToWrite();
  EXPECT_TRUE(Step(3).draft.empty()) << "one writes";
  ASSERT_TRUE(master_->Written(Worker(0), "z", CheckpointManifest::File{}, At(4)).ok());
  EXPECT_FALSE(Committed()) << "a draft that was given up";
  const CheckpointManifest::File file{0, "partition-0", 0, 9, "draft-2", "a digest"};
  EXPECT_EQ(master_->Written(Incarnation(99), "a", file, At(4)).code(), Code::kAborted)
      << "of nobody";
  EXPECT_FALSE(Committed());
  ASSERT_TRUE(master_->Written(Worker(0), "a", file, At(4)).ok());
  EXPECT_TRUE(Committed());
  const std::optional<WorldCheckpoint::Cut> cut = master_->world_checkpoint().Take();
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->manifest.steps, 2) << "of the step at which the draft was taken";
  EXPECT_EQ(cut->manifest.files.at(0).digest, "a digest");
}

TEST_F(AllReduceCheckpoint, ADiskThatTakesNothingIsToldAndTriedAgain) {
  BeginToWrite();
  const Result<CheckpointManifest::File> full = Unavailable("the disk is full");
  ASSERT_TRUE(master_->Written(Worker(0), "a", full, At(4)).ok());
  EXPECT_FALSE(Committed());
  EXPECT_EQ(Count("checkpoint_failed"), 1);
  EXPECT_FALSE(master_->world_checkpoint().Take().has_value());
  ASSERT_TRUE(
      master_->ReportStep(Worker(0), world_.world.id, 3, After(world_.lanes, 3, false), At(9))
          .ok());
  EXPECT_TRUE(Begun());
}

// When the members regroup, the writer may be gone; a checkpoint that was not begun is still
// wanted.
TEST_F(AllReduceCheckpoint, ANewWorldDropsOnlyWhatIsBeingWritten) {
  BeginToWrite();
  master_->OnExit(started_[1].name, ExitClass::kPreempted, "gone", At(4));
  const RoundPosition position = After(world_.lanes, 2, false);
  Regroup(0, 2, position, world_.world.generation, world_.world.id);
  Collect();
  EXPECT_EQ(Count("checkpoint_failed"), 1);
  EXPECT_FALSE(master_->world_checkpoint().Take().has_value());

  master_->world_checkpoint().Offer({2, "b"});
  Regroup(2, Rendezvous::kNoState, {}, kNoGeneration, kNoWorld);
  Regroup(0, 2, position, world_.world.generation.Next(), world_.world.id.Next());
  Collect();
  EXPECT_EQ(Count("checkpoint_failed"), 1);
  EXPECT_TRUE(master_->world_checkpoint().Take().has_value());
}

TEST_F(AllReduceCheckpoint, LostParametersAreKnownToTheNextMaster) {
  options_.queue.journal = true;
  BeginToWrite();
  std::vector<std::string> journal = {master_->TakeJournal().value()};
  master_->LoseParameters(Unavailable("every worker that had the parameters was lost"));
  journal.push_back(master_->TakeJournal().value());
  const auto next = Master::TakeOver(options_, Term(2), journal, {}, At(5)).value();
  EXPECT_TRUE(next->finished());
  EXPECT_EQ(next->result().code(), Code::kUnavailable);
  EXPECT_TRUE(next->parameters_lost()) << "a checkpoint may help";
}

}  // namespace
}  // namespace sluice::elastic
