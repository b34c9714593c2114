#include <fmt/core.h>
#include <gtest/gtest.h>

#include <optional>

#include "elastic/master/master.h"

// The master of an all-reduce job, at its end.
namespace sluice::elastic {
namespace {

using std::chrono::seconds;

class MasterWorldTest : public ::testing::Test {
 protected:
  static Master::Options Options() {
    Master::Options options;
    options.queue.shards = 2;
    options.queue.epochs = 1;
    options.queue.lanes = 2;
    options.queue.lease_seconds = 20;
    options.all_reduce.emplace();
    options.all_reduce->expected_members = 2;
    return options;
  }
  WorldAnswer Regroup(Incarnation worker, int64_t closed) {
    WorldArrival arrival;
    arrival.at.address = fmt::format("worker {}", worker);
    arrival.at.closed = closed;
    arrival.at.generation = generation_;
    arrival.at.world = world_;
    arrival.position = position_;
    return master_->Regroup(worker, arrival, now_).value();
  }
  // Both regroup, and continue with the answers.
  std::pair<WorldAnswer, WorldAnswer> RegroupBoth(int64_t closed) {
    Regroup(old_, closed);
    const WorldAnswer young = Regroup(young_, closed);
    const WorldAnswer old = Regroup(old_, closed);
    generation_ = old.world.generation;
    world_ = old.world.id;
    return {old, young};
  }
  // The only step of the only round: both lanes have one batch of ten rows.
  void CloseLanes(const std::vector<Task>& lanes) {
    position_ = {lanes[0].epoch, lanes[0].round, BatchIndex(1), {}};
    for (const Task& lane : lanes) {
      TaskReport report;
      report.task = lane.id;
      report.next_batch = BatchIndex(1);
      report.rows = 10;
      report.weight = 10;
      report.done = report.end_of_shard = true;
      report.batches = 1;
      report.shard_rows = 10;
      position_.lanes.push_back(report);
    }
  }
  void TrainAll(const std::vector<Task>& lanes) {
    CloseLanes(lanes);
    ASSERT_TRUE(master_->ReportStep(old_, world_, 1, position_, now_).ok());
  }

  TimePoint now_{seconds(100)};
  std::optional<Master> master_{std::in_place, Options(), now_};
  const Incarnation old_ = master_->Expect("old", now_);
  const Incarnation young_ = master_->Expect("young", now_);
  Generation generation_ = kNoGeneration;
  WorldId world_ = kNoWorld;
  RoundPosition position_;
};

// E7: the oldest member delivers the weights, once, and not before every row has been trained.
TEST_F(MasterWorldTest, E7_OnlyTheOldestDeliversAndOnlyAtTheEnd) {
  const auto [begin, other] = RegroupBoth(Rendezvous::kNoState);
  ASSERT_EQ(begin.work, WorldAnswer::Work::kTrain);
  ASSERT_TRUE(master_->Deliver(old_, {}).ok());
  EXPECT_FALSE(master_->finished()) << "in the middle of the training";
  TrainAll(begin.lanes);
  ASSERT_FALSE(master_->finished());
  const auto [old, young] = RegroupBoth(1);
  EXPECT_EQ(old.work, WorldAnswer::Work::kExport);
  EXPECT_NE(young.work, WorldAnswer::Work::kExport);
  ASSERT_TRUE(master_->Deliver(young_, {}).ok());
  EXPECT_FALSE(master_->finished()) << "by a member that was not asked";
  ASSERT_TRUE(master_->Deliver(old_, {}).ok());
  EXPECT_TRUE(master_->finished());
  EXPECT_TRUE(master_->result().ok()) << master_->result().ToString();
}

// The oldest member dies while it exports: the next one is asked.
TEST_F(MasterWorldTest, E7_WhenTheOldestDiesTheNextDelivers) {
  const auto [begin, other] = RegroupBoth(Rendezvous::kNoState);
  TrainAll(begin.lanes);
  EXPECT_EQ(RegroupBoth(1).first.work, WorldAnswer::Work::kExport);
  master_->OnExit("old", ExitClass::kPreempted, "", now_);
  EXPECT_EQ(Regroup(young_, 1).work, WorldAnswer::Work::kExport);
  ASSERT_TRUE(master_->Deliver(young_, {}).ok());
  EXPECT_TRUE(master_->result().ok() && master_->finished());
}

// Every member keeps the best weights, with the same bits.
class KeptWeights : public MasterWorldTest {
 protected:
  // Both have trained an epoch, and know that its weights are the best so far.
  void KeepFirstEpoch() {
    Master::Options options = Options();
    options.queue.epochs = 3;
    options.patience = 2;
    master_.emplace(options, now_);
    ASSERT_EQ(master_->Expect("old", now_), old_);
    ASSERT_EQ(master_->Expect("young", now_), young_);
    CloseLanes(RegroupBoth(Rendezvous::kNoState).first.lanes);  // they report it when they regroup
    const auto [old, young] = RegroupBoth(1);
    ASSERT_EQ(old.best, 1);
    ASSERT_EQ(old.work, WorldAnswer::Work::kTrain);
  }
  Status Say(Incarnation worker, const std::string& digest, int64_t kept = 1) {
    WorldArrival arrival;
    arrival.at.address = "worker";
    arrival.at.closed = 1;
    arrival.at.generation = generation_;
    arrival.at.world = world_;
    arrival.kept = kept;
    arrival.kept_digest = digest;
    return master_->Regroup(worker, arrival, now_).status();
  }
};

TEST_F(KeptWeights, AreJournaledByTheirDigest) {
  KeepFirstEpoch();
  ASSERT_TRUE(Say(old_, "of an earlier epoch", 0).ok());
  EXPECT_EQ(master_->best_digest(), "");
  ASSERT_TRUE(Say(old_, "abc").ok());
  ASSERT_TRUE(Say(young_, "abc").ok());
  EXPECT_EQ(master_->best_digest(), "abc");
  const std::string journal = master_->TakeJournal().value();
  Master::Options options = Options();
  options.queue.epochs = 3;
  options.patience = 2;
  EXPECT_EQ(
      Master::TakeOver(options, Term(2), {journal}, {"old", "young"}, now_).value()->best_digest(),
      "abc");
}

TEST_F(KeptWeights, ThatDifferEndTheJob) {
  KeepFirstEpoch();
  ASSERT_TRUE(Say(old_, "abc").ok());
  EXPECT_EQ(Say(young_, "abd").code(), Code::kInternal);
  EXPECT_TRUE(master_->finished());
  EXPECT_EQ(master_->result().message(), "two workers keep different weights of step 1");
}

}  // namespace
}  // namespace sluice::elastic
