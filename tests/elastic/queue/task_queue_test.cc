#include "elastic/queue/task_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

TEST(TaskQueue, HandsOutShardsInOrder) {
  TaskQueue queue(QueueOf(4));
  for (ShardId shard; shard < ShardId(4); ++shard) {
    const std::optional<Task> task = queue.Take(Incarnation(1), kTimeZero);
    ASSERT_TRUE(task.has_value());
    EXPECT_EQ(task->shard, shard);
    EXPECT_EQ(task->id, TaskId(shard.value() + 1));
  }
  EXPECT_FALSE(queue.Take(Incarnation(1), kTimeZero).has_value());
}

TEST(TaskQueue, AnEpochEndsBeforeTheNextBegins) {
  TaskQueue queue(QueueOf(2, 2));
  const Task first = *queue.Take(Incarnation(1), kTimeZero);
  const Task second = *queue.Take(Incarnation(2), kTimeZero);
  ASSERT_EQ(*queue.Report(Incarnation(1), Done(first, 3, 30), kTimeZero),
            TaskQueue::Answer::kAccepted);
  EXPECT_FALSE(queue.Take(Incarnation(1), kTimeZero).has_value());
  EXPECT_FALSE(queue.EpochDone());
  ASSERT_EQ(*queue.Report(Incarnation(2), Done(second, 2, 20), kTimeZero),
            TaskQueue::Answer::kAccepted);
  ASSERT_TRUE(queue.EpochDone());
  queue.StartNextEpoch();
  EXPECT_EQ(queue.Take(Incarnation(1), kTimeZero)->epoch, Epoch(2));
  EXPECT_EQ(queue.RowsOfSnapshot(), 50);
}

TEST(TaskQueue, LostWorkersTasksGoToTheFrontInTheirOrder) {
  TaskQueue queue(QueueOf(4));
  const Task first = *queue.Take(Incarnation(1), kTimeZero);
  const Task second = *queue.Take(Incarnation(1), kTimeZero);
  EXPECT_EQ(queue.ReleaseAll(Incarnation(1)).size(), 2U);
  const Task again = *queue.Take(Incarnation(2), kTimeZero);
  EXPECT_EQ(again.shard, first.shard);
  EXPECT_EQ(again.attempt, Attempt(2));
  EXPECT_EQ(queue.Take(Incarnation(2), kTimeZero)->shard, second.shard);
  EXPECT_EQ(queue.Take(Incarnation(2), kTimeZero)->shard, ShardId(2));
}

TEST(TaskQueue, LossesAreNeverCharged) {
  TaskQueue queue(QueueOf(1));
  for (Incarnation worker(1); worker <= Incarnation(10); ++worker) {
    ASSERT_TRUE(queue.Take(worker, kTimeZero).has_value());
    queue.ReleaseAll(worker);
  }
  const Task task = *queue.Take(Incarnation(11), kTimeZero);
  ASSERT_TRUE(queue.Report(Incarnation(11), Done(task, 2, 20), kTimeZero).ok());
  EXPECT_TRUE(queue.EpochDone());
  EXPECT_TRUE(queue.CheckLedger().ok());
}

TEST(TaskQueue, PoisonShardIsGivenUpAfterTwoWorkersAndThreeFailures) {
  TaskQueue queue(QueueOf(2));
  EXPECT_FALSE(queue.ChargeFailure(Incarnation(1), ShardId(0)));
  EXPECT_FALSE(queue.ChargeFailure(Incarnation(1), ShardId(0)));
  EXPECT_FALSE(queue.ChargeFailure(Incarnation(1), ShardId(0)))
      << "one worker alone may be the reason itself";
  EXPECT_FALSE(queue.ChargeFailure(Incarnation(2), ShardId(1))) << "another shard";
  EXPECT_TRUE(queue.ChargeFailure(Incarnation(2), ShardId(0)));
}

TEST(TaskQueue, LateSuccessOfATaskThatWentToSomeoneElseIsRejected) {
  TaskQueue queue(QueueOf(1));
  const Task first = *queue.Take(Incarnation(1), kTimeZero);
  EXPECT_EQ(queue.ExpireLeases(At(100)).size(), 1U);
  const Task second = *queue.Take(Incarnation(2), At(100));
  EXPECT_EQ(second.attempt, first.attempt + 1);
  EXPECT_EQ(*queue.Report(Incarnation(1), Done(first, 2, 20), At(100)),
            TaskQueue::Answer::kRejected);
  EXPECT_FALSE(queue.EpochDone());
  EXPECT_EQ(*queue.Report(Incarnation(2), Done(second, 2, 20), At(100)),
            TaskQueue::Answer::kAccepted);
  EXPECT_EQ(queue.totals().rows, 20);
}

TEST(TaskQueue, LateSuccessIsAcceptedWhileNobodyElseHasTheTask) {
  TaskQueue queue(QueueOf(1));
  const Task task = *queue.Take(Incarnation(1), kTimeZero);
  ASSERT_TRUE(queue.Report(Incarnation(1), Upto(task, 3, 30), At(1)).ok());
  EXPECT_EQ(queue.ExpireLeases(At(100)).size(), 1U);
  EXPECT_EQ(*queue.Report(Incarnation(1), Done(task, 5, 50), At(101)),
            TaskQueue::Answer::kAccepted);
  EXPECT_TRUE(queue.EpochDone());
  EXPECT_FALSE(queue.Take(Incarnation(2), At(101)).has_value());
  EXPECT_EQ(queue.RowsOfSnapshot(), 50);
  EXPECT_TRUE(queue.CheckLedger().ok());
}

TEST(TaskQueue, RepeatedReportsChangeNothing) {
  TaskQueue queue(QueueOf(2));
  const Task task = *queue.Take(Incarnation(1), kTimeZero);
  EXPECT_EQ(*queue.Report(Incarnation(1), Upto(task, 2, 20), kTimeZero),
            TaskQueue::Answer::kAccepted);
  EXPECT_EQ(*queue.Report(Incarnation(1), Upto(task, 2, 20), kTimeZero),
            TaskQueue::Answer::kDuplicate);
  EXPECT_EQ(*queue.Report(Incarnation(1), Upto(task, 1, 10), kTimeZero),
            TaskQueue::Answer::kDuplicate);
  EXPECT_EQ(*queue.Report(Incarnation(1), Done(task, 3, 30), kTimeZero),
            TaskQueue::Answer::kAccepted);
  EXPECT_EQ(*queue.Report(Incarnation(1), Done(task, 3, 30), kTimeZero),
            TaskQueue::Answer::kDuplicate);
  EXPECT_EQ(queue.totals().rows, 30);
}

TEST(TaskQueue, UnknownTasksAndStrangersAreRejected) {
  TaskQueue queue(QueueOf(2));
  const Task task = *queue.Take(Incarnation(1), kTimeZero);
  Task unknown = task;
  unknown.id = TaskId(99);
  EXPECT_EQ(*queue.Report(Incarnation(1), Done(unknown, 3, 30), kTimeZero),
            TaskQueue::Answer::kRejected);
  EXPECT_EQ(*queue.Report(Incarnation(2), Done(task, 3, 30), kTimeZero),
            TaskQueue::Answer::kRejected);
  EXPECT_EQ(queue.totals().rows, 0);
  EXPECT_EQ(queue.leased(), 1U);
}

TEST(TaskQueue, ReportsAndHeartbeatsRenewTheLease) {
  TaskQueue queue(QueueOf(2));
  const Task task = *queue.Take(Incarnation(1), kTimeZero);
  ASSERT_TRUE(queue.Report(Incarnation(1), Upto(task, 1, 10), At(9)).ok());
  EXPECT_TRUE(queue.ExpireLeases(At(15)).empty());
  queue.Renew(Incarnation(1), At(18));
  EXPECT_TRUE(queue.ExpireLeases(At(27)).empty());
  EXPECT_EQ(queue.ExpireLeases(At(28)).size(), 1U);
}

TEST(TaskQueue, OnlyTheRestOfAShardIsDoneAgain) {
  TaskQueue queue(QueueOf(1));
  const Task task = *queue.Take(Incarnation(1), kTimeZero);
  ASSERT_TRUE(queue.Report(Incarnation(1), Upto(task, 5, 320), kTimeZero).ok());
  queue.ReleaseAll(Incarnation(1));
  const Task rest = *queue.Take(Incarnation(2), kTimeZero);
  EXPECT_EQ(rest.first_batch, BatchIndex(5));
  ASSERT_TRUE(queue.Report(Incarnation(2), Done(rest, 8, 180), kTimeZero).ok());
  EXPECT_EQ(queue.totals().rows, 500);
  EXPECT_EQ(queue.RowsOfSnapshot(), 500);
}

TEST(TaskQueue, AnswersThatGotLostAreHandedOutAgain) {
  TaskQueue queue(QueueOf(2));
  const Task lost = *queue.Take(Incarnation(1), kTimeZero);
  const Task held = *queue.Take(Incarnation(1), kTimeZero);
  EXPECT_EQ(queue.ReleaseOthers(Incarnation(1), {held.id}).size(), 1U);
  EXPECT_EQ(queue.Take(Incarnation(1), kTimeZero)->shard, lost.shard);
}

TEST(TaskQueue, AShardThatChangesItsRowsFailsTheJob) {
  TaskQueue queue(QueueOf(1, 2));
  ASSERT_TRUE(
      queue.Report(Incarnation(1), Done(*queue.Take(Incarnation(1), kTimeZero), 3, 30), kTimeZero)
          .ok());
  queue.StartNextEpoch();
  const Result<TaskQueue::Answer> answer =
      queue.Report(Incarnation(1), Done(*queue.Take(Incarnation(1), kTimeZero), 3, 29), kTimeZero);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.status().message().find("30"), std::string::npos);
}

TEST(TaskQueue, BudgetOfBatchesIsExactForManyWorkers) {
  TaskQueue::Options options = QueueOf(10, 5);
  options.max_batches = 137;
  options.batches_per_task = 8;
  TaskQueue queue(options);
  int64_t trained = 0;
  while (!queue.BudgetSpent()) {
    std::vector<std::pair<Incarnation, Task>> running;
    for (Incarnation worker(1); worker <= Incarnation(4); ++worker) {
      if (const std::optional<Task> task = queue.Take(worker, kTimeZero)) {
        running.emplace_back(worker, *task);
      }
    }
    ASSERT_FALSE(running.empty());
    for (const auto& [worker, task] : running) {
      constexpr BatchIndex kEndOfAShard = EndOf(20);
      const BatchIndex end = std::min(task.last_batch, kEndOfAShard);
      TaskReport report = Done(task, end.value(), (end - task.first_batch) * 10);
      report.end_of_shard = end == kEndOfAShard;
      trained += end - task.first_batch;
      ASSERT_TRUE(queue.Report(worker, report, kTimeZero).ok());
    }
    if (queue.EpochDone() && !queue.BudgetSpent()) {
      queue.StartNextEpoch();
    }
  }
  EXPECT_EQ(trained, 137);
  EXPECT_EQ(queue.totals().rows, 1370);
  EXPECT_FALSE(queue.Take(Incarnation(1), kTimeZero).has_value());
}

TEST(TaskQueue, SynchronousRoundsFollowEachOther) {
  TaskQueue::Options options = QueueOf(6);
  options.lanes = 4;
  TaskQueue queue(options);
  std::vector<Task> round;
  while (const std::optional<Task> task = queue.Take(Incarnation(1), kTimeZero)) {
    round.push_back(*task);
  }
  ASSERT_EQ(round.size(), 4U);
  for (uint32_t lane = 0; lane < 4; ++lane) {
    EXPECT_EQ(round[lane].lane, lane);
    EXPECT_EQ(round[lane].lanes, 4U);
  }
  for (const Task& task : round) {
    EXPECT_FALSE(queue.Take(Incarnation(2), kTimeZero).has_value());
    ASSERT_TRUE(queue.Report(Incarnation(1), Done(task, 3, 30), kTimeZero).ok());
  }
  const Task next = *queue.Take(Incarnation(2), kTimeZero);
  EXPECT_EQ(next.round, RoundIndex(1));
  EXPECT_EQ(next.lanes, 2U) << "the last round of an epoch may be narrower";
}

// S18 and the core of G1: whichever workers die, and whenever, every batch of every shard is
// committed exactly once in each epoch.
TEST(TaskQueue, RandomDeathsLoseAndDoubleNothing) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    uint64_t state = seed;
    const auto random = [&state](uint64_t below) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      return (state >> 33) % below;
    };
    TaskQueue::Options options = QueueOf(static_cast<int64_t>(1 + random(12)), 2);
    options.shuffle = true;
    options.seed = seed;
    options.lanes = random(3) == 0 ? 4 : 0;
    TaskQueue queue(options);
    std::map<Incarnation, std::map<TaskId, std::pair<Task, TaskReport>>> workers;
    std::map<std::pair<Epoch, ShardId>, std::set<BatchIndex>> committed;
    Incarnation newest(0);
    double now = 0;
    const auto batches_of = [](ShardId shard) { return 1 + shard.value() % 5; };
    for (int step = 0; step < 100'000; ++step) {
      now += 0.5;
      if (queue.EpochDone()) {
        if (queue.LastEpoch()) {
          break;
        }
        queue.StartNextEpoch();
      }
      if (workers.size() < 3) {
        workers[++newest];
      }
      auto worker = workers.begin();
      std::advance(worker, static_cast<std::ptrdiff_t>(random(workers.size())));
      const uint64_t action = random(10);
      if (action == 0) {
        queue.ReleaseAll(worker->first);
        workers.erase(worker);
      } else if (action == 1) {
        now += 11;  // all workers are silent for long
        queue.ExpireLeases(At(now));
      } else if (action <= 3 || worker->second.empty()) {
        if (const std::optional<Task> task = queue.Take(worker->first, At(now))) {
          TaskReport report;
          report.task = task->id;
          report.next_batch = task->first_batch;
          worker->second[task->id] = {*task, report};
        }
      } else {
        auto& [task, report] = worker->second.begin()->second;
        const BatchIndex before = report.next_batch;
        if (before < EndOf(batches_of(task.shard))) {
          ++report.next_batch;
          report.rows += 10;
        }
        report.done = report.next_batch == EndOf(batches_of(task.shard));
        report.end_of_shard = report.done;
        const Result<TaskQueue::Answer> answer = queue.Report(worker->first, report, At(now));
        ASSERT_TRUE(answer.ok()) << answer.status().ToString();
        if (*answer == TaskQueue::Answer::kAccepted) {
          for (BatchIndex batch = before; batch < report.next_batch; ++batch) {
            EXPECT_TRUE(committed[std::pair(task.epoch, task.shard)].insert(batch).second)
                << "seed " << seed << ": committed twice";
          }
        }
        if (*answer == TaskQueue::Answer::kRejected || report.done) {
          worker->second.erase(worker->second.begin());
        }
      }
    }
    ASSERT_TRUE(queue.EpochDone() && queue.LastEpoch()) << "seed " << seed << " does not end";
    EXPECT_TRUE(queue.CheckLedger().ok()) << queue.CheckLedger().ToString();
    int64_t batches = 0;
    for (ShardId shard; shard < ShardId(options.shards); ++shard) {
      for (const Epoch epoch : {Epoch(1), Epoch(2)}) {
        EXPECT_EQ(committed[std::pair(epoch, shard)].size(), static_cast<size_t>(batches_of(shard)))
            << "seed " << seed;
      }
      batches += batches_of(shard);
    }
    EXPECT_EQ(queue.totals().rows, 2 * batches * 10);
  }
}

}  // namespace
}  // namespace sluice::elastic
