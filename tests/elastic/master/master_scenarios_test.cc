// Scenarios S and K that the master decides, and E12, by their numbers, on virtual time.
#include "tests/elastic/master/master_scenario.h"

namespace sluice::elastic {
namespace {

TEST_F(MasterScenario, S7_TenDeathsOfTheHolderOfOneShard) {
  options_.workers = 1;
  options_.queue.epochs = 1;
  Start();
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(Take(started_.back().incarnation)->shard, ShardId(0));
    master_->OnExit(started_.back().name, ExitClass::kPreempted, "exit code 137", At(1));
    master_->Tick(At(1 + 10 * static_cast<double>(i)));
    Collect();
  }
  Work(started_.back().incarnation, 100);
  ASSERT_TRUE(master_->finished());
  EXPECT_TRUE(master_->result().ok()) << master_->result().ToString();
}

TEST_F(MasterScenario, S8_APoisonedShardIsSkippedWhereThatIsAllowed) {
  options_.workers = 1;
  options_.queue.epochs = 1;
  options_.skip_poison = true;
  Start();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Take(started_.back().incarnation)->shard, ShardId(0));
    master_->OnExit(started_.back().name, ExitClass::kApplication, "exit code 139", At(1));
    Collect();
  }
  Work(started_.back().incarnation, 2);
  Collect();
  ASSERT_TRUE(master_->finished());
  EXPECT_TRUE(master_->result().ok()) << master_->result().ToString();
  EXPECT_EQ(master_->Outcome().rows_trained, 300);
  EXPECT_EQ(Count("shard_skipped"), 1);
  EXPECT_EQ(master_->queue().ledger().skipped().front().shard, ShardId(0));
}

TEST_F(MasterScenario, S8_TheShardThatWasReadAheadIsNotTakenForThePoisonedOne) {
  options_.workers = 1;
  options_.queue.epochs = 1;
  options_.skip_poison = true;
  Start();
  for (int i = 0; i < 3; ++i) {
    const Incarnation worker = started_.back().incarnation;
    const Task poisoned = *Take(worker);
    ASSERT_EQ(poisoned.shard, ShardId(0));
    // It also asks for the next shard, which dies with it the first time.
    ASSERT_TRUE(master_->Take(worker, false, {poisoned.id}, At(1)).ok());
    master_->OnExit(started_.back().name, ExitClass::kApplication, "exit code 139", At(1));
    Collect();
  }
  Work(started_.back().incarnation, 2);
  ASSERT_TRUE(master_->finished());
  EXPECT_EQ(master_->queue().ledger().skipped().size(), 1U) << "the shard beside it is innocent";
  EXPECT_EQ(master_->Outcome().rows_trained, 300);
}

TEST_F(MasterScenario, S12_AHungWorkerIsNoticedAfterThreeSecondsAndFenced) {
  options_.silence_seconds = 3;
  Start();
  const Incarnation hung = started_[0].incarnation, other = started_[1].incarnation;
  const Task task = *Take(hung, 1);
  ASSERT_TRUE(master_->Heartbeat(other, At(3.5)).ok());
  master_->Tick(At(3.9));
  Collect();
  EXPECT_TRUE(stopped_.empty());
  master_->Tick(At(4.1));
  Collect();
  ASSERT_EQ(stopped_.size(), 1U);
  EXPECT_EQ(started_.size(), 3U);
  EXPECT_EQ(Take(other, 4.2)->shard, task.shard);
  EXPECT_EQ(master_->Report(hung, Done(task), At(5)).status().code(), Code::kAborted);
}

TEST_F(MasterScenario, S12_HeartbeatsDoNotRenewALeaseThatDoesNotMove) {
  options_.queue.lease_seconds = 20;
  Start();
  const Incarnation stuck = started_[0].incarnation, other = started_[1].incarnation;
  const Task task = *Take(stuck, 0);
  for (double now = 1; now <= 21; ++now) {
    ASSERT_TRUE(master_->Heartbeat(stuck, At(now)).ok());
    ASSERT_TRUE(master_->Heartbeat(other, At(now)).ok());
    master_->Tick(At(now));
  }
  EXPECT_EQ(Take(other, 21)->shard, task.shard);
  EXPECT_FALSE(master_->Report(stuck, Done(task), At(22))->mine);
}

TEST_F(MasterScenario, S14_NoRowsFailBeforeAnythingStarts) {
  options_.queue.shards = 0;
  Start();
  EXPECT_TRUE(master_->finished());
  EXPECT_TRUE(started_.empty());
  EXPECT_NE(master_->result().message().find("no rows"), std::string::npos);
}

TEST_F(MasterScenario, S16_ALedgerThatIsNotTheSnapshotFailsTheJob) {
  options_.queue.epochs = 1;
  for (const int64_t snapshot : {400, 401}) {
    options_.snapshot_rows = snapshot;
    started_.clear();
    Start();
    Work(started_[0].incarnation, 1);
    ASSERT_TRUE(master_->finished());
    EXPECT_EQ(master_->result().ok(), snapshot == 400) << master_->result().ToString();
  }
  EXPECT_NE(master_->result().message().find("401"), std::string::npos);
}

TEST_F(MasterScenario, S20_AllWorkersDieAndOneComesBackAfterAMinute) {
  options_.workers = 8;
  options_.queue.epochs = 1;
  Start();
  const std::vector<Master::Action> first = started_;
  for (const Master::Action& worker : first) {
    ASSERT_TRUE(master_->Heartbeat(worker.incarnation, At(0)).ok());
  }
  const Task task = *Take(first[0].incarnation);
  started_.clear();
  for (const Master::Action& worker : first) {
    master_->OnExit(worker.name, ExitClass::kPreempted, "exit code 137", At(1));
  }
  for (double now = 1; now < 61; now += 0.5) {
    master_->Tick(At(now));
    Collect();
    for (const Master::Action& worker : std::exchange(started_, {})) {
      master_->OnNotStarted(worker.name, "no room", At(now));
    }
  }
  ASSERT_FALSE(master_->finished()) << master_->result().ToString();
  EXPECT_EQ(Count("degraded"), 1);
  EXPECT_EQ(Count("worker_waits"), 1) << "said once, not every second";
  master_->Tick(At(63));
  Collect();
  ASSERT_FALSE(started_.empty());
  EXPECT_EQ(Take(started_[0].incarnation, 64)->shard, task.shard);
  Work(started_[0].incarnation, 64);
  EXPECT_TRUE(master_->finished() || master_->queue().leased() > 0);
}

TEST_F(MasterScenario, S21_AWorkerThatWasCutOffForLongComesBackAsAnother) {
  options_.silence_seconds = 3;
  Start();
  const Incarnation cut_off = started_[0].incarnation;
  const Task task = *Take(cut_off, 0);
  ASSERT_TRUE(master_->Heartbeat(started_[1].incarnation, At(60)).ok());
  master_->Tick(At(60));
  Collect();
  // Aborted makes the process exit with a preempted process's code, never with 0.
  EXPECT_EQ(master_->Heartbeat(cut_off, At(60)).status().code(), Code::kAborted);
  EXPECT_EQ(master_->Take(cut_off, true, {task.id}, At(60)).status().code(), Code::kAborted);
  ASSERT_EQ(started_.size(), 3U);
  EXPECT_GT(started_[2].incarnation, cut_off);
  EXPECT_EQ(Take(started_[2].incarnation, 60)->shard, task.shard);
}

TEST_F(MasterScenario, S23_AnotherMasterGoesOnFromTheJournal) {
  options_.queue.journal = true;
  options_.queue.epochs = 2;
  Start();
  const Incarnation one = started_[0].incarnation, two = started_[1].incarnation;
  ASSERT_TRUE(master_->Report(one, Done(*Take(one)), At(1)).ok());
  const Task lost = *Take(one), kept = *Take(two);
  std::vector<std::string> journal{master_->TakeJournal().value()};
  ASSERT_TRUE(master_->TakeJournal().value().empty()) << "nothing has happened since";
  const Task unwritten = *Take(two, 1, {kept.id});
  ASSERT_TRUE(master_->Heartbeat(two, At(1)).ok());
  Result<std::unique_ptr<Master>> other =
      Master::TakeOver(options_, Term(2), journal, {started_[1].name, "stranger"}, At(1000));
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  master_ = std::move(*other);
  started_.clear();
  Collect();
  ASSERT_EQ(stopped_.size(), 1U);
  EXPECT_EQ(stopped_[0].name, "stranger");
  ASSERT_EQ(started_.size(), 1U) << "for the one that died with the old master";
  EXPECT_EQ(master_->queue().totals().rows, 100);
  EXPECT_FALSE(master_->Report(two, Done(unwritten), At(1001))->mine);
  EXPECT_TRUE(master_->Report(two, Done(kept), At(1001))->mine);
  EXPECT_EQ(Take(two, 1001)->shard, lost.shard) << "what was going on comes first";
  EXPECT_EQ(Take(started_[0].incarnation, 1001)->shard, unwritten.shard);
}

TEST_F(MasterScenario, S23_WhatEndedBeforeTheTakeoverStaysEnded) {
  options_.queue.journal = true;
  Start();
  ASSERT_TRUE(master_
                  ->Fail(started_[0].incarnation, Take(started_[0].incarnation)->id,
                         InvalidArgument("no such class 'maybe'"), At(1))
                  .ok());
  const Result<std::unique_ptr<Master>> other =
      Master::TakeOver(options_, Term(2), {master_->TakeJournal().value()}, {}, At(2));
  ASSERT_TRUE(other.ok());
  EXPECT_TRUE((*other)->finished());
  EXPECT_EQ((*other)->result().message(), "no such class 'maybe'");
}

TEST_F(MasterScenario, E12_WhenEveryWorkerFailsTheFirstTextIsTold) {
  options_.workers = 2;
  Start();
  double now = 0;
  for (size_t i = 0; i < started_.size() && !master_->finished(); ++i) {
    now += 10;
    master_->OnExit(started_[i].name, ExitClass::kApplication, "libxyz.so is missing", At(now));
    master_->Tick(At(now + 9));
    Collect();
  }
  ASSERT_TRUE(master_->finished());
  EXPECT_NE(master_->result().message().find("libxyz.so is missing"), std::string::npos);
}

TEST_F(MasterScenario, K2_AWorkerThatRanOutOfMemoryIsReplacedByALargerOne) {
  options_.workers = 1;
  Start();
  std::vector<double> factors{started_[0].memory_factor};
  for (int i = 0; i < 6; ++i) {
    const std::string name = started_.back().name;
    master_->OnExit(name, ExitClass::kOutOfMemory, "exit code 137", At(10.0 * i));
    master_->OnExit(name, ExitClass::kOutOfMemory, "exit code 137", At(10.0 * i));  // repeated
    master_->Tick(At(10.0 * i + 9));
    Collect();
    factors.push_back(started_.back().memory_factor);
  }
  EXPECT_EQ(factors, (std::vector<double>{1, 1.5, 2.25, 3.375, 5.0625, 5.0625, 5.0625}));
}

TEST_F(MasterScenario, K18_ThirtyOfThirtyTwoAreReplacedAtOnce) {
  options_.workers = 32;
  options_.queue.shards = 64;
  Start();
  for (const Master::Action& worker : started_) {
    ASSERT_TRUE(master_->Report(worker.incarnation, Done(*Take(worker.incarnation)), At(1)).ok());
  }
  const std::vector<Master::Action> first = std::exchange(started_, {});
  for (size_t i = 0; i < 30; ++i) {
    master_->OnExit(first[i].name, ExitClass::kPreempted, "exit code 137", At(2));
  }
  Collect();
  EXPECT_EQ(started_.size(), 30U);
}

}  // namespace
}  // namespace sluice::elastic
