#include <gtest/gtest.h>

#include "tests/elastic/master/master_steps.h"

// What another master knows of a job in addition to its queue.
namespace sluice::elastic {
namespace {

class MasterTakeOver : public MasterTest {
 protected:
  MasterTakeOver() {
    options_.queue.journal = true;
    options_.queue.epochs = 1;
  }
  void Write() {
    bool anew = false;
    const std::string entry = master_->TakeJournal(&anew).value();
    if (anew) {
      journal_.clear();
    }
    if (!entry.empty()) {
      journal_.push_back(entry);
    }
  }
  // All processes live.
  void TakeOver() {
    std::vector<std::string> alive;
    for (const Master::Action& action : started_) {
      alive.push_back(action.name);
    }
    Result<std::unique_ptr<Master>> other =
        Master::TakeOver(options_, ++term_, journal_, alive, At(5));
    ASSERT_TRUE(other.ok()) << other.status().ToString();
    master_ = std::move(*other);
    Collect();
    ASSERT_EQ(started_.size(), 2U) << "nobody is replaced";
    ASSERT_TRUE(stopped_.empty());
  }
  Term term_ = Term::First();
  std::vector<std::string> journal_;
};

TEST_F(MasterTakeOver, K20_ThePlacementOfTheParametersIsKnown) {
  Start();
  Write();
  Placement placement;
  placement.map = PlaceEvenly({{ServerId(0), "here:1"}, {ServerId(3), "there:2"}}, 4, true);
  placement.servers = {ServerId(0), ServerId(3), ServerId(4)};
  placement.next = ServerId(5);
  placement.wanted = 3;
  master_->SetPlacement(placement);
  Write();
  EXPECT_EQ(journal_.size(), 2U);
  TakeOver();
  EXPECT_EQ(master_->placement(), placement);
  Write();
  ASSERT_EQ(journal_.size(), 1U) << "a successor writes everything, and what was before goes";
  TakeOver();
  EXPECT_EQ(master_->placement(), placement);
}

// It begins again once, not once under each master.
TEST_F(MasterTakeOver, AJobThatBeganAgainIsKnown) {
  options_.begun_again = true;
  Start();
  Write();
  options_.begun_again = false;
  TakeOver();
  EXPECT_TRUE(master_->options().begun_again);
}

// A pod may wait for a node for long, and its fleet looks after it.
TEST_F(MasterTakeOver, WhoHasNotStartedYetIsNotTakenForSilent) {
  Start();
  ASSERT_TRUE(Take(Worker(0)).has_value());
  Write();
  TakeOver();
  master_->Tick(At(5 + options_.silence_seconds - 1));
  Collect();
  EXPECT_EQ(started_.size(), 2U);
  master_->Tick(At(5 + options_.silence_seconds + 1));
  Collect();
  ASSERT_EQ(stopped_.size(), 1U) << "the one that had begun says nothing";
  EXPECT_EQ(stopped_[0].name, started_[0].name);
  EXPECT_EQ(started_.size(), 3U);
  ASSERT_TRUE(Take(Worker(1), 100).has_value());
}

TEST_F(MasterTakeOver, P8_NobodyBeginsBeforeAllWhoTrainHaveSaidWhereTheyAre) {
  options_.staleness = 2;
  Start();
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Take(Worker(i)).has_value());
    ASSERT_TRUE(*master_->MayBegin(Worker(i), 0, At(1)));
  }
  ASSERT_TRUE(*master_->MayBegin(Worker(0), 1, At(1)));
  ASSERT_TRUE(*master_->MayBegin(Worker(0), 2, At(1)));
  Write();
  TakeOver();
  EXPECT_FALSE(*master_->MayBegin(Worker(0), 2, At(6))) << "the other one may be behind";
  EXPECT_TRUE(*master_->MayBegin(Worker(1), 0, At(6)));
  EXPECT_TRUE(*master_->MayBegin(Worker(0), 2, At(6)));
  EXPECT_FALSE(*master_->MayBegin(Worker(0), 3, At(6))) << "its lead is known";
  EXPECT_TRUE(*master_->MayBegin(Worker(1), 1, At(6)));
  EXPECT_TRUE(*master_->MayBegin(Worker(0), 3, At(6)));
}

class WorldTakeOver : public MasterTakeOver {
 protected:
  WorldTakeOver() {
    options_.queue.lanes = 2;
    Rendezvous::Options& group = options_.all_reduce.emplace();
    group.expected_members = 2;
  }
};

TEST_F(WorldTakeOver, K20_AWorldGoesOnUnderAnotherMaster) {
  Start();
  Regroup(0, Rendezvous::kNoState, {}, kNoGeneration, kNoWorld);
  const WorldAnswer first = Regroup(1, Rendezvous::kNoState, {}, kNoGeneration, kNoWorld);
  ASSERT_EQ(first.work, WorldAnswer::Work::kTrain);
  Write();
  ASSERT_FALSE(
      master_->ReportStep(Worker(0), first.world.id, 1, After(first.lanes, 1, false), At(3))
          ->regroup);
  // It is not written again: repeated, it changes nothing.
  TakeOver();
  EXPECT_FALSE(
      master_->ReportStep(Worker(0), first.world.id, 2, After(first.lanes, 2, false), At(6))
          ->regroup)
      << "its members need not regroup";
  EXPECT_EQ(master_->queue().totals().rows, 100);
  Write();
  TakeOver();
  // One of the two had not received the regroup's outcome when the master died.
  EXPECT_EQ(Regroup(1, Rendezvous::kNoState, {}, kNoGeneration, kNoWorld).world.id, first.world.id);
  const RoundPosition over = After(first.lanes, 4, true);
  Regroup(0, 4, over, first.world.generation, first.world.id);
  const WorldAnswer second = Regroup(1, 4, over, first.world.generation, first.world.id);
  ASSERT_EQ(second.work, WorldAnswer::Work::kTrain);
  EXPECT_EQ(second.world.id, first.world.id) << "the same members";
  EXPECT_EQ(second.lanes[0].round, RoundIndex(1));
  EXPECT_EQ(master_->queue().totals().rows, 200);
}

TEST_F(WorldTakeOver, E7_WeightsThatDiedWithTheMasterAreDeliveredAgain) {
  options_.queue.shards = 2;
  Start();
  Regroup(0, Rendezvous::kNoState, {}, kNoGeneration, kNoWorld);
  const WorldAnswer only = Regroup(1, Rendezvous::kNoState, {}, kNoGeneration, kNoWorld);
  const RoundPosition over = After(only.lanes, 4, true);
  Regroup(0, 4, over, only.world.generation, only.world.id);
  const WorldAnswer last = Regroup(1, 4, over, only.world.generation, only.world.id);
  Write();
  const size_t exporter = last.work == WorldAnswer::Work::kExport ? 1 : 0;
  ASSERT_TRUE(master_->Deliver(Worker(exporter), {}).ok());
  ASSERT_TRUE(master_->finished());
  EXPECT_NE(Regroup(1 - exporter, 4, over, last.world.generation, last.world.id).work,
            WorldAnswer::Work::kFinished)
      << "the weights are in the master's memory only";
  EXPECT_FALSE(*master_->Heartbeat(Worker(0), At(4)));
  Write();
  TakeOver();
  EXPECT_FALSE(master_->finished());
  Regroup(0, 4, over, last.world.generation, last.world.id);
  const WorldAnswer again = Regroup(1, 4, over, last.world.generation, last.world.id);
  ASSERT_TRUE(master_->Deliver(Worker(again.work == WorldAnswer::Work::kExport ? 1 : 0), {}).ok());
  EXPECT_TRUE(master_->finished());
  master_->handover().Dismiss();
  EXPECT_TRUE(*master_->Heartbeat(Worker(0), At(7)));
}

}  // namespace
}  // namespace sluice::elastic
