// The sharding scenarios S1 to S23 that depend on the queue alone; the others are in
// master_scenarios_test.cc and tests/process.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

using Answer = TaskQueue::Answer;

TEST(QueueScenario, S1_TasksAreNumberedAndInOrder) {
  TaskQueue queue(QueueOf(4));
  for (ShardId shard; shard < ShardId(4); ++shard) {
    const Task task = *queue.Take(Incarnation(1), kTimeZero);
    EXPECT_EQ(task.shard, shard);
    EXPECT_EQ(task.id, TaskId(shard.value() + 1));
    EXPECT_EQ(task.first_batch, BatchIndex(0));
  }
  EXPECT_FALSE(queue.Take(Incarnation(1), kTimeZero).has_value());
}

TEST(QueueScenario, S2_ShardsOfDifferentLengthAddUp) {
  TaskQueue queue(QueueOf(2));
  const Task first = *queue.Take(Incarnation(1), kTimeZero),
             second = *queue.Take(Incarnation(2), kTimeZero);
  ASSERT_EQ(*queue.Report(Incarnation(1), Done(first, 3, 25), kTimeZero), Answer::kAccepted);
  ASSERT_EQ(*queue.Report(Incarnation(2), Done(second, 1, 7), kTimeZero), Answer::kAccepted);
  EXPECT_EQ(queue.RowsOfSnapshot(), 32);
  EXPECT_TRUE(queue.CheckLedger().ok());
}

TEST(QueueScenario, S3_EpochsDoNotOverlap) {
  TaskQueue queue(QueueOf(2, 2));
  const Task first = *queue.Take(Incarnation(1), kTimeZero),
             second = *queue.Take(Incarnation(2), kTimeZero);
  ASSERT_TRUE(queue.Report(Incarnation(1), Done(first, 1, 10), kTimeZero).ok());
  EXPECT_FALSE(queue.Take(Incarnation(1), kTimeZero).has_value())
      << "epoch 2 waits for the last shard of epoch 1";
  ASSERT_TRUE(queue.Report(Incarnation(2), Done(second, 1, 10), kTimeZero).ok());
  queue.StartNextEpoch();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(
        queue.Report(Incarnation(1), Done(*queue.Take(Incarnation(1), kTimeZero), 1, 10), kTimeZero)
            .ok());
  }
  EXPECT_EQ(queue.rows_per_epoch(), (std::vector<int64_t>{20, 20}));
}

TEST(QueueScenario, S4_StopsAtExactlySoManyBatches) {
  TaskQueue::Options options = QueueOf(10, 5);
  options.max_batches = 5;
  options.batches_per_task = 2;
  TaskQueue queue(options);
  int64_t trained = 0;
  while (const std::optional<Task> task = queue.Take(Incarnation(1), kTimeZero)) {
    trained += task->last_batch - task->first_batch;
    ASSERT_TRUE(
        queue.Report(Incarnation(1), Trained(*task, task->last_batch.value(), 100), kTimeZero)
            .ok());
  }
  EXPECT_EQ(trained, 5);
  EXPECT_TRUE(queue.BudgetSpent());
}

TEST(QueueScenario, S5_AFailedTaskGoesToTheFrontForAnother) {
  TaskQueue queue(QueueOf(3));
  const Task task = *queue.Take(Incarnation(1), kTimeZero);
  ASSERT_TRUE(queue.Release(Incarnation(1), task.id).has_value());
  EXPECT_FALSE(queue.ChargeFailure(Incarnation(1), task.shard));
  const Task again = *queue.Take(Incarnation(2), kTimeZero);
  EXPECT_EQ(again.shard, task.shard);
  EXPECT_EQ(again.first_batch, task.first_batch);
  EXPECT_EQ(again.attempt, task.attempt + 1);
}

TEST(QueueScenario, S6_BothTasksOfAKilledWorkerComeBackInOrder) {
  TaskQueue queue(QueueOf(4));
  ASSERT_TRUE(queue.Take(Incarnation(1), kTimeZero) && queue.Take(Incarnation(1), kTimeZero));
  queue.ReleaseAll(Incarnation(1));
  for (ShardId shard; shard < ShardId(4); ++shard) {
    const Task task = *queue.Take(Incarnation(2), kTimeZero);
    EXPECT_EQ(task.shard, shard);
    ASSERT_TRUE(queue.Report(Incarnation(2), Done(task, 1, 10), kTimeZero).ok());
  }
  EXPECT_TRUE(queue.EpochDone());
  EXPECT_TRUE(queue.CheckLedger().ok());
}

TEST(QueueScenario, S7_TenLossesOfOneShardAreNotCharged) {
  TaskQueue queue(QueueOf(1));
  for (Incarnation worker(1); worker <= Incarnation(10); ++worker) {
    ASSERT_TRUE(queue.Take(worker, kTimeZero).has_value());
    queue.ReleaseAll(worker);
  }
  EXPECT_TRUE(queue.state().failures().empty());
  ASSERT_TRUE(
      queue.Report(Incarnation(11), Done(*queue.Take(Incarnation(11), kTimeZero), 2, 20), kTimeZero)
          .ok());
  EXPECT_TRUE(queue.EpochDone());
}

TEST(QueueScenario, S8_SkippedRangesAreCountedAndNamedNeverSilent) {
  TaskQueue queue(QueueOf(2, 2));
  // The first epoch is complete; in the second, shard 0 fails after two of its five batches.
  for (int i = 0; i < 2; ++i) {
    const Task task = *queue.Take(Incarnation(1), kTimeZero);
    ASSERT_TRUE(queue.Report(Incarnation(1), Trained(task, 5, 5), kTimeZero).ok());
  }
  queue.StartNextEpoch();
  const Task poisoned = *queue.Take(Incarnation(1), kTimeZero);
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(poisoned, 2, 5), kTimeZero).ok());
  queue.ReleaseAll(Incarnation(1));
  const std::vector<Ledger::Skipped> skipped = queue.Skip(ShardId(0), kTimeZero);
  ASSERT_EQ(skipped.size(), 1U);
  EXPECT_EQ(skipped[0].shard, ShardId(0));
  EXPECT_EQ(skipped[0].first_batch, BatchIndex(2));
  EXPECT_EQ(queue.ledger().rows_skipped(), 30);
  ASSERT_TRUE(
      queue.Report(Incarnation(2), Trained(*queue.Take(Incarnation(2), kTimeZero), 5, 5), kTimeZero)
          .ok());
  EXPECT_TRUE(queue.EpochDone());
  EXPECT_EQ(queue.rows_per_epoch(), (std::vector<int64_t>{100, 70}));
  EXPECT_TRUE(queue.CheckLedger().ok()) << queue.CheckLedger().ToString();
}

TEST(QueueScenario, S8_AShardThatNobodyCouldReadIsSkippedInEveryEpoch) {
  TaskQueue queue(QueueOf(2, 2));
  ASSERT_TRUE(queue.Take(Incarnation(1), kTimeZero).has_value());
  queue.ReleaseAll(Incarnation(1));
  queue.Skip(ShardId(0), kTimeZero);
  ASSERT_TRUE(
      queue.Report(Incarnation(2), Trained(*queue.Take(Incarnation(2), kTimeZero), 5, 5), kTimeZero)
          .ok());
  ASSERT_TRUE(queue.EpochDone());
  queue.StartNextEpoch();
  EXPECT_EQ(queue.Take(Incarnation(2), kTimeZero)->shard, ShardId(1)) << "not tried again";
  EXPECT_EQ(queue.ledger().skipped().size(), 2U);
}

TEST(QueueScenario, S9_LateSuccessOfAReassignedTask) {
  TaskQueue queue(QueueOf(2));
  const Task first = *queue.Take(Incarnation(1), kTimeZero),
             second = *queue.Take(Incarnation(1), kTimeZero);
  ASSERT_EQ(queue.ExpireLeases(At(100)).size(), 2U);
  const Task copy = *queue.Take(Incarnation(2), At(100));
  EXPECT_EQ(*queue.Report(Incarnation(1), Done(first, 2, 20), At(101)), Answer::kRejected);
  EXPECT_EQ(*queue.Report(Incarnation(1), Done(second, 2, 20), At(101)), Answer::kAccepted)
      << "nobody had taken it: accepted, once";
  EXPECT_EQ(*queue.Report(Incarnation(2), Done(copy, 2, 20), At(102)), Answer::kAccepted);
  EXPECT_EQ(queue.totals().rows, 40);
  EXPECT_TRUE(queue.EpochDone());
}

TEST(QueueScenario, S10_S11_RepeatedAndStrangeReports) {
  TaskQueue queue(QueueOf(2));
  const Task task = *queue.Take(Incarnation(1), kTimeZero);
  ASSERT_EQ(*queue.Report(Incarnation(1), Done(task, 3, 30), kTimeZero), Answer::kAccepted);
  EXPECT_EQ(*queue.Report(Incarnation(1), Done(task, 3, 30), kTimeZero), Answer::kDuplicate);
  const Task other = *queue.Take(Incarnation(1), kTimeZero);
  EXPECT_EQ(*queue.Report(Incarnation(2), Done(other, 3, 30), kTimeZero), Answer::kRejected);
  Task unknown = other;
  unknown.id = TaskId(77);
  EXPECT_EQ(*queue.Report(Incarnation(1), Done(unknown, 3, 30), kTimeZero), Answer::kRejected);
  EXPECT_EQ(queue.totals().rows, 30);
}

TEST(QueueScenario, S12_ALeaseThatIsTooShortForTheWorkGrows) {
  TaskQueue queue(QueueOf(1));  // leases of ten seconds
  double now = 0;
  for (const double seconds : {10, 20, 40}) {
    ASSERT_TRUE(queue.Take(Incarnation(1), At(now)).has_value());
    EXPECT_TRUE(queue.ExpireLeases(At(now + seconds - 1)).empty());
    now += seconds;
    EXPECT_EQ(queue.ExpireLeases(At(now)).size(), 1U);
  }
  const Task task = *queue.Take(Incarnation(2), At(now));
  ASSERT_TRUE(queue.Report(Incarnation(2), Trained(task, 1, 5), At(now + 70)).ok());
  EXPECT_EQ(queue.ExpireLeases(At(now + 81)).size(), 1U) << "it moves: leases are short again";
}

// Three tasks took two seconds each; the fourth's holder is silent.
class Straggler : public ::testing::Test {
 protected:
  Straggler() : queue_(QueueOf(4)) {
    late_ = *queue_.Take(Incarnation(9), At(0));
    for (int i = 0; i < 3; ++i) {
      const Task task = *queue_.Take(Incarnation(1), At(2 * i));
      EXPECT_TRUE(queue_.Report(Incarnation(1), Trained(task, 10, 10), At(2 * i + 2)).ok());
      queue_.Renew(Incarnation(9), At(2 * i + 2));
    }
  }
  TaskQueue queue_;
  Task late_;
};

TEST_F(Straggler, S12_AStoppedWorkersTaskIsIssuedAgain) {
  const std::optional<Task> copy = queue_.Steal(Incarnation(1), At(6));
  ASSERT_TRUE(copy.has_value());
  EXPECT_EQ(copy->shard, late_.shard);
  EXPECT_EQ(copy->attempt, late_.attempt) << "a race: nobody is fenced before someone has won";
  EXPECT_FALSE(queue_.Steal(Incarnation(2), At(6)).has_value()) << "one copy is enough";
}

TEST_F(Straggler, S8_NobodyRacesATaskOnWhichCodeHasFailed) {
  queue_.ChargeFailure(Incarnation(7), late_.shard);
  EXPECT_FALSE(queue_.Steal(Incarnation(1), At(6)).has_value());
}

TEST_F(Straggler, S19_TheFirstAtTheEndHasFinishedTheTaskOnce) {
  const Task copy = *queue_.Steal(Incarnation(1), At(6));
  ASSERT_EQ(*queue_.Report(Incarnation(9), Trained(late_, 4, 10), At(7)), Answer::kAccepted);
  ASSERT_TRUE(queue_.Report(Incarnation(1), Trained(copy, 3, 10), At(7)).ok());
  EXPECT_EQ(queue_.totals().rows, 340) << "batches 0 to 3 count once";
  ASSERT_EQ(*queue_.Report(Incarnation(1), Trained(copy, 10, 10), At(8)), Answer::kAccepted);
  EXPECT_EQ(queue_.totals().rows, 400);
  EXPECT_TRUE(queue_.EpochDone());
  EXPECT_EQ(*queue_.Report(Incarnation(9), Trained(late_, 5, 10), At(9)), Answer::kRejected);
  EXPECT_EQ(queue_.totals().rows, 400);
  EXPECT_TRUE(queue_.CheckLedger().ok());
}

TEST_F(Straggler, S19_NotBeforeItIsLate) {
  TaskQueue queue(QueueOf(2));
  const Task slow = *queue.Take(Incarnation(9), At(0));
  const Task quick = *queue.Take(Incarnation(1), At(0));
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(quick, 10, 10), At(2)).ok());
  EXPECT_FALSE(queue.Steal(Incarnation(1), At(2.9)).has_value()) << "1.5 times the median is 3 s";
  EXPECT_TRUE(queue.Steal(Incarnation(1), At(3.1)).has_value());
  EXPECT_EQ(slow.shard, ShardId(0));
}

TEST(QueueScenario, S19_HalfOfWhatIsLeftIsStolen) {
  TaskQueue queue(QueueOf(1));
  const Task slow = *queue.Take(Incarnation(1), At(0));
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(slow, 20, 100), At(1)).ok());
  const std::optional<Task> stolen = queue.Steal(Incarnation(2), At(1));
  ASSERT_TRUE(stolen.has_value());
  EXPECT_EQ(stolen->shard, slow.shard);
  EXPECT_EQ(stolen->first_batch, BatchIndex(60));
  EXPECT_EQ(stolen->range, RangeId(60));
  EXPECT_EQ(stolen->last_batch, kToTheEnd);
  EXPECT_EQ(queue.LastBatch(slow.id), BatchIndex(60));
  // The holder went too far before it learnt of it: nothing of that report counts.
  EXPECT_EQ(*queue.Report(Incarnation(1), Trained(slow, 63, 100), At(2)), Answer::kCut);
  EXPECT_EQ(queue.totals().rows, 200);
  Task shorter = slow;
  shorter.last_batch = BatchIndex(60);
  EXPECT_EQ(*queue.Report(Incarnation(1), Trained(shorter, 60, 100), At(2)), Answer::kAccepted);
  EXPECT_FALSE(queue.EpochDone());
  EXPECT_EQ(*queue.Report(Incarnation(2), Trained(*stolen, 100, 100), At(3)), Answer::kAccepted);
  EXPECT_TRUE(queue.EpochDone());
  EXPECT_EQ(queue.RowsOfSnapshot(), 1000);
  EXPECT_TRUE(queue.CheckLedger().ok());
}

TEST(QueueScenario, S19_AThiefThatDiesLeavesItsRestToOthers) {
  TaskQueue queue(QueueOf(1));
  const Task slow = *queue.Take(Incarnation(1), At(0));
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(slow, 20, 100), At(1)).ok());
  const Task stolen = *queue.Steal(Incarnation(2), At(1));
  ASSERT_TRUE(queue.Report(Incarnation(2), Trained(stolen, 70, 100), At(1.5)).ok());
  queue.ReleaseAll(Incarnation(2));
  const Task rest = *queue.Take(Incarnation(3), At(2));
  EXPECT_EQ(rest.range, RangeId(60));
  EXPECT_EQ(rest.first_batch, BatchIndex(70));
  EXPECT_EQ(rest.attempt, stolen.attempt + 1);
}

TEST(QueueScenario, S19_ALateLaneIsRacedNeverSplit) {
  TaskQueue::Options options = QueueOf(2);
  options.lanes = 2;
  TaskQueue queue(options);
  const Task first = *queue.Take(Incarnation(1), At(0)),
             second = *queue.Take(Incarnation(2), At(0));
  ASSERT_TRUE(queue.Report(Incarnation(2), Trained(second, 6, 10), At(1)).ok());
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(first, 5, 10), At(1)).ok());
  EXPECT_FALSE(queue.Steal(Incarnation(3), At(1.5)).has_value()) << "the step is not late";
  const Task copy = *queue.Steal(Incarnation(3), At(2.5));
  EXPECT_EQ(copy.lane, first.lane) << "the lane that the step waits for";
  EXPECT_EQ(copy.first_batch, BatchIndex(5));
  EXPECT_EQ(copy.last_batch, kToTheEnd);
}

TEST(QueueScenario, S13_OnlyTheRestIsDoneAgain) {
  TaskQueue queue(QueueOf(1));
  const Task task = *queue.Take(Incarnation(1), kTimeZero);
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(task, 5, 8), kTimeZero).ok());
  queue.ReleaseAll(Incarnation(1));
  const Task rest = *queue.Take(Incarnation(2), kTimeZero);
  EXPECT_EQ(rest.first_batch, BatchIndex(5));
  ASSERT_TRUE(queue.Report(Incarnation(2), Trained(rest, 8, 8), kTimeZero).ok());
  EXPECT_EQ(queue.totals().rows, 80);
}

TEST(QueueScenario, S15_TenToTheNineRowsNeedLittleMemoryAndNoSteps) {
  // 3 x 10^9 rows in 10^6 shards: bench/queue_bench measures the memory; this only tests that
  // numbers do not overflow and nothing is materialised before it is requested.
  TaskQueue::Options options = QueueOf(1'000'000);
  options.shuffle = true;
  TaskQueue queue(options);
  std::set<ShardId> shards;
  for (int i = 0; i < 1000; ++i) {
    const Task task = *queue.Take(Incarnation(1), kTimeZero);
    EXPECT_TRUE(shards.insert(task.shard).second);
    ASSERT_TRUE(queue.Report(Incarnation(1), Done(task, 3'000'000, 3'000'000'000), kTimeZero).ok());
  }
  EXPECT_EQ(queue.totals().rows, 3'000'000'000'000);
  EXPECT_TRUE(queue.state().ranges().empty());
  EXPECT_TRUE(queue.state().leases().empty());
}

TEST(QueueScenario, S16_OtherRowsThanBeforeEndTheJob) {
  TaskQueue queue(QueueOf(1, 2));
  TaskReport report = Trained(*queue.Take(Incarnation(1), kTimeZero), 3, 3);
  report.checksum = 0xABCD;
  ASSERT_TRUE(queue.Report(Incarnation(1), report, kTimeZero).ok());
  queue.StartNextEpoch();
  const Task task = *queue.Take(Incarnation(1), kTimeZero);
  report = Trained(task, 3, 3);
  report.checksum = 0xABCE;
  EXPECT_FALSE(queue.Report(Incarnation(1), report, kTimeZero).ok())
      << "as many rows, but not the same";
  report = Done(task, 3, 29);
  report.checksum = 0xABCD;
  EXPECT_FALSE(queue.Report(Incarnation(1), report, kTimeZero).ok()) << "fewer rows";
}

TEST(QueueScenario, S17_TheSameSeedTrainsTheSameRowsWithOneWorkerOrEight) {
  const auto run = [](uint64_t workers, bool kills) {
    TaskQueue::Options options = QueueOf(23, 3);
    options.shuffle = true;
    options.seed = 5;
    TaskQueue queue(options);
    std::multiset<std::pair<Epoch, ShardId>> trained;
    std::mt19937_64 random(workers);
    for (uint64_t first = 1; !(queue.EpochDone() && queue.LastEpoch());) {
      if (queue.EpochDone()) {
        queue.StartNextEpoch();
      }
      const Incarnation who(first + random() % workers);
      const std::optional<Task> task = queue.Take(who, kTimeZero);
      if (kills && random() % 3 == 0) {
        queue.ReleaseAll(who);
        first += workers;
      } else if (task.has_value()) {
        EXPECT_TRUE(queue.Report(who, Trained(*task, 4, 4), kTimeZero).ok());
        trained.insert({task->epoch, task->shard});
      }
    }
    return trained;
  };
  EXPECT_EQ(run(1, false), run(8, true));
}

TEST(QueueScenario, S18_AThousandTasksAndEveryThirdHolderIsKilled) {
  TaskQueue queue(QueueOf(1000));
  std::mt19937_64 random(7);
  Incarnation worker(1);
  while (!queue.EpochDone()) {
    const Task task = *queue.Take(worker, kTimeZero);
    if (random() % 10 < 3) {
      queue.ReleaseAll(worker++);
    } else {
      ASSERT_TRUE(queue.Report(worker, Trained(task, 2, 2), kTimeZero).ok());
    }
  }
  EXPECT_EQ(queue.totals().rows, 20'000);
  EXPECT_TRUE(queue.CheckLedger().ok());
}

// Its speed is measured by bench/queue_bench; a queue that searched through its holders would not
// finish this test.
// Batch i has loss i + 1. In whatever order the reports of two copies of a lane arrive, the sum is
// that of one.
TEST(QueueScenario, S19_TheLossOfARacedLaneIsThatOfOneWhoTrainsIt) {
  TaskQueue::Options options = QueueOf(2);
  options.lanes = 2;
  TaskQueue queue(options);
  const Task lane = *queue.Take(Incarnation(1), At(0)), other = *queue.Take(Incarnation(2), At(0));
  const auto report = [&](Incarnation worker, const Task& task, int64_t upto, double now) {
    TaskReport said = Trained(task, upto, 10);
    for (BatchIndex batch = task.first_batch; batch < BatchIndex(upto); ++batch) {
      said.loss += static_cast<double>(batch.index()) + 1;
      said.weight += 10;
    }
    ASSERT_TRUE(queue.Report(worker, said, At(now)).ok());
  };
  report(Incarnation(1), lane, 5, 1);
  report(Incarnation(2), other, 6, 1);
  const Task copy = *queue.Steal(Incarnation(3), At(2.5));
  ASSERT_EQ(copy.lane, lane.lane);
  report(Incarnation(3), copy, 8, 3);
  report(Incarnation(1), lane, 9, 4);
  report(Incarnation(3), copy, 10, 5);
  EXPECT_EQ(queue.totals().loss, 55 + 21);
  EXPECT_EQ(queue.totals().weight, 100 + 60);
}

TEST(QueueScenario, S22_TenThousandWorkersShareAQueue) {
  constexpr int64_t kShards = 200'000;
  constexpr size_t kWorkers = 10'000;
  TaskQueue queue(QueueOf(kShards));
  std::vector<std::optional<Task>> held(kWorkers + 1);
  std::vector<int> trained(kShards, 0);
  TimePoint now = kTimeZero;
  Incarnation next(kWorkers);  // replaces those that are gone
  std::vector<Incarnation> who(kWorkers + 1);
  std::iota(who.begin(), who.end(), kNobody);
  for (int round = 0; !queue.EpochDone(); ++round, now += std::chrono::milliseconds(10)) {
    ASSERT_LT(round, 100);
    for (size_t worker = 1; worker <= kWorkers; ++worker) {
      held[worker] = queue.Take(who[worker], now);
    }
    for (size_t worker = 1; worker <= kWorkers; ++worker) {
      if (!held[worker].has_value()) {
        continue;
      }
      if (worker % 100 == static_cast<size_t>(round)) {
        queue.ReleaseAll(who[worker]);
        who[worker] = ++next;
        continue;
      }
      ASSERT_TRUE(queue.Report(who[worker], Trained(*held[worker], 1, 2), now).ok());
      ASSERT_TRUE(queue.Report(who[worker], Trained(*held[worker], 2, 2), now).ok());
      ++trained[held[worker]->shard.index()];
    }
  }
  EXPECT_EQ(std::count(trained.begin(), trained.end(), 1), kShards);
  EXPECT_EQ(queue.totals().rows, 20 * kShards);
  EXPECT_TRUE(queue.CheckLedger().ok());
}

TEST(QueueScenario, S23_ASavedQueueGoesOnWhereItWas) {
  TaskQueue queue(QueueOf(6));
  const Task done = *queue.Take(Incarnation(1), kTimeZero);
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(done, 5, 5), kTimeZero).ok());
  const Task half = *queue.Take(Incarnation(1), kTimeZero),
             kept = *queue.Take(Incarnation(2), kTimeZero);
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(half, 2, 5), kTimeZero).ok());
  Result<QueueState> state = QueueCodec::Read(QueueOf(6), Save(queue), At(50));
  ASSERT_TRUE(state.ok()) << state.status().ToString();
  std::optional<TaskQueue> restored(*std::move(state));
  EXPECT_EQ(Save(*restored).SerializeAsString(), Save(queue).SerializeAsString());
  restored->TakeOver(Term(2), {Incarnation(2)}, At(50));
  const Task rest = *restored->Take(Incarnation(3), At(50));
  EXPECT_EQ(rest.shard, half.shard) << "what was going on comes first";
  EXPECT_EQ(rest.first_batch, BatchIndex(2));
  EXPECT_GT(rest.attempt, half.attempt + 1000) << "above what the old master may have handed out";
  EXPECT_EQ(restored->Take(Incarnation(3), At(50))->shard, ShardId(3));
  EXPECT_EQ(*restored->Report(Incarnation(2), Trained(kept, 5, 5), At(51)), Answer::kAccepted)
      << "a living worker's lease goes on";
  EXPECT_EQ(restored->totals().rows, 120);
}

TEST(QueueScenario, S23_AQueueOfAnotherJobIsRefused) {
  TaskQueue queue(QueueOf(6));
  EXPECT_TRUE(QueueCodec::Read(QueueOf(6), Save(queue), kTimeZero).ok());
  EXPECT_FALSE(QueueCodec::Read(QueueOf(7), Save(queue), kTimeZero).ok());
  EXPECT_FALSE(QueueCodec::Read(QueueOf(6), QueueSave(), kTimeZero).ok());
}

}  // namespace
}  // namespace sluice::elastic
