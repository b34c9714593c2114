// The sharding scenarios S1 to S23 that depend on the queue alone; the others are in
// queue_stealing_test.cc, master_scenarios_test.cc and tests/process.
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
  for (const double lease : {10, 20, 40}) {
    ASSERT_TRUE(queue.Take(Incarnation(1), At(now)).has_value());
    EXPECT_TRUE(queue.ExpireLeases(At(now + lease - 1)).empty());
    now += lease;
    EXPECT_EQ(queue.ExpireLeases(At(now)).size(), 1U);
  }
  const Task task = *queue.Take(Incarnation(2), At(now));
  ASSERT_TRUE(queue.Report(Incarnation(2), Trained(task, 1, 5), At(now + 70)).ok());
  EXPECT_EQ(queue.ExpireLeases(At(now + 81)).size(), 1U) << "it moves: leases are short again";
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

TEST(QueueScenario, S22_TenThousandWorkersShareAQueue) {
  constexpr int64_t kShards = 200'000;
  constexpr size_t kWorkers = 10'000;
  TaskQueue queue(QueueOf(kShards));
  std::vector<std::optional<Task>> held(kWorkers + 1);
  std::vector<int> trained(kShards, 0);
  TimePoint now = kTimeZero;
  Incarnation next(kWorkers);  // replaces those that are gone
  std::vector<Incarnation> who(kWorkers + 1);
  std::iota(who.begin(), who.end(), kNoIncarnation);
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
