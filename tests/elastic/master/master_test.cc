#include "tests/elastic/master/master_steps.h"

namespace sluice::elastic {
namespace {

TEST_F(MasterTest, StartsItsWorkersTogether) {
  Start();
  ASSERT_EQ(started_.size(), 2U);
  EXPECT_EQ(started_[0].name, "job7-worker-1");
  EXPECT_NE(started_[0].incarnation, started_[1].incarnation);
}

TEST_F(MasterTest, EndsWhenEveryRowIsTrainedAndSaysWhatHappened) {
  options_.workers = 1;
  Start();
  const Incarnation worker = started_[0].incarnation;
  FinishEpoch(worker);
  EXPECT_FALSE(master_->finished());
  FinishEpoch(worker);
  ASSERT_TRUE(master_->finished());
  ASSERT_TRUE(master_->result().ok()) << master_->result().ToString();
  const TrainOutcome outcome = master_->Outcome();
  EXPECT_EQ(outcome.rows_per_epoch, 400);
  EXPECT_EQ(outcome.rows_trained, 800);
  EXPECT_EQ(outcome.epochs, 2U);
  EXPECT_DOUBLE_EQ(outcome.loss, 0.5);
  EXPECT_EQ(master_->outbox().TakeEpochEnds().size(), 2U);
  EXPECT_EQ(master_->Take(worker, true, {}, At(2))->kind, MasterLink::Answer::Kind::kNothing)
      << "it keeps the snapshot for a master that has yet to store the model";
  master_->handover().Dismiss();
  EXPECT_EQ(master_->Take(worker, true, {}, At(2))->kind, MasterLink::Answer::Kind::kFinished);
}

// Its replacement would not find it either, nor the next: nobody waits for eight of them.
TEST_F(MasterTest, AWorkerThatFindsNoSnapshotEndsTheTrainingUnlessOthersKeepIt) {
  Start();
  const Task task = *Take(Worker(0));
  TaskReport half;
  half.task = task.id;
  half.next_batch = BatchIndex(2);
  half.rows = 50;
  ASSERT_TRUE(master_->Report(Worker(0), half, At(1)).ok());
  const Status gone = Status(Code::kFailedPrecondition, "the snapshot is gone").SqlState("72000");
  ASSERT_TRUE(master_->Fail(Worker(1), kNoTask, gone, At(1)).ok());
  EXPECT_FALSE(master_->finished());
  master_->OnExit(started_[0].name, ExitClass::kPreempted, "exit code 137", At(1));
  Collect();
  ASSERT_TRUE(master_->Fail(Worker(1), kNoTask, gone, At(1)).ok());
  EXPECT_TRUE(master_->finished());
  EXPECT_EQ(master_->result().sqlstate(), "72000");
}

TEST_F(MasterTest, ALostWorkerIsReplacedAndItsRestGoesOn) {
  Start();
  const Task task = *Take(started_[0].incarnation);
  TaskReport half;
  half.task = task.id;
  half.next_batch = BatchIndex(2);
  half.rows = 50;
  ASSERT_TRUE(master_->Report(started_[0].incarnation, half, At(1)).ok());
  master_->OnExit(started_[0].name, ExitClass::kPreempted, "exit code 137", At(1));
  Collect();
  ASSERT_EQ(started_.size(), 3U);
  EXPECT_NE(started_[2].name, started_[0].name);
  EXPECT_EQ(Count("worker_lost"), 1);
  EXPECT_EQ(Count("task_requeued"), 1);
  const Task rest = *Take(started_[1].incarnation);
  EXPECT_EQ(rest.shard, task.shard);
  EXPECT_EQ(rest.first_batch, BatchIndex(2));
}

TEST_F(MasterTest, AWorkerThatWasGivenUpIsNotHeardAnyMore) {
  Start();
  const Incarnation sleeper = started_[0].incarnation;
  const Task task = *Take(sleeper);
  ASSERT_TRUE(Take(started_[1].incarnation, 11.5).has_value());
  master_->Tick(At(12));
  Collect();
  ASSERT_EQ(stopped_.size(), 1U);
  EXPECT_EQ(stopped_[0].name, started_[0].name);
  EXPECT_EQ(started_.size(), 3U);
  const Result<LeaseStatus> late = master_->Report(sleeper, Done(task), At(13));
  EXPECT_EQ(late.status().code(), Code::kAborted);
  EXPECT_EQ(master_->Take(sleeper, true, {}, At(13)).status().code(), Code::kAborted);
}

TEST_F(MasterTest, HeartbeatsKeepAWorkerThoughItsLeaseRunsOut) {
  Start();
  const Incarnation worker = started_[0].incarnation;
  const Task task = *Take(worker);
  for (double now = 5; now < 60; now += 5) {
    ASSERT_TRUE(master_->Heartbeat(worker, At(now)).ok());
    master_->Tick(At(now));
  }
  EXPECT_TRUE(master_->Report(worker, Done(task), At(60))->mine);
}

TEST_F(MasterTest, MistakesInTheStatementEndTheJobAtOnce) {
  Start();
  const Task task = *Take(started_[0].incarnation);
  ASSERT_TRUE(master_
                  ->Fail(started_[0].incarnation, task.id,
                         InvalidArgument("label 'maybe' of column 'y' is not a class"), At(1))
                  .ok());
  ASSERT_TRUE(master_->finished());
  EXPECT_EQ(master_->result().message(), "label 'maybe' of column 'y' is not a class");
}

TEST_F(MasterTest, AShardThatCrashesEveryoneIsNamed) {
  options_.workers = 1;
  Start();
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_FALSE(master_->finished());
    ASSERT_TRUE(Take(started_[i].incarnation).has_value());
    master_->OnExit(started_[i].name, ExitClass::kApplication, "exit code 139", At(1));
    Collect();
  }
  ASSERT_TRUE(master_->finished());
  EXPECT_NE(master_->result().message().find("shard 0"), std::string::npos);
}

TEST_F(MasterTest, LossesAloneNeverEndAJobThatGetsOn) {
  options_.workers = 1;
  options_.queue.shards = 100;
  options_.queue.epochs = 1;
  Start();
  for (size_t i = 0; i < 100; ++i) {
    const std::optional<Task> task = Take(started_[i].incarnation);
    ASSERT_TRUE(task.has_value());
    ASSERT_TRUE(master_->Report(started_[i].incarnation, Done(*task), At(1)).ok());
    master_->OnExit(started_[i].name, ExitClass::kPreempted, "exit code 137", At(1));
    Collect();
  }
  ASSERT_TRUE(master_->finished());
  EXPECT_TRUE(master_->result().ok()) << master_->result().ToString();
}

TEST_F(MasterTest, WorkersThatNeverGetAnywhereEndTheJob) {
  options_.workers = 1;
  Start();
  for (size_t i = 0; i < 50 && !master_->finished(); ++i) {
    const double now = static_cast<double>(i) * 10;
    master_->OnExit(started_[i].name, ExitClass::kApplication, "no connection left", At(now));
    master_->Tick(At(now + 9));  // replacements come at growing intervals
    Collect();
  }
  ASSERT_TRUE(master_->finished());
  EXPECT_NE(master_->result().message().find("no connection left"), std::string::npos);
  EXPECT_EQ(started_.size(), static_cast<size_t>(WorkerPool::kFailedStarts) + 1);
}

TEST_F(MasterTest, AJobGoesOnWithTheWorkersThatWork) {
  options_.queue.epochs = 1;
  Start();
  const Task task = *Take(started_[0].incarnation);
  std::string bad = started_[1].name;
  for (int i = 0; i < 20; ++i) {
    master_->OnExit(bad, ExitClass::kApplication, "no connection left", At(1));
    ASSERT_TRUE(master_->Heartbeat(started_[0].incarnation, At(1)).ok());
    master_->Tick(At(9));
    Collect();
    bad = started_.back().name;
  }
  EXPECT_FALSE(master_->finished());
  EXPECT_GE(Count("worker_not_replaced"), 1);
  EXPECT_EQ(started_.size(), 2 + static_cast<size_t>(WorkerPool::kFailedStarts));
  EXPECT_TRUE(master_->Report(started_[0].incarnation, Done(task), At(9))->mine);
}

TEST_F(MasterTest, AWorkerThatEndsInPeaceTooEarlyLosesNothing) {
  options_.workers = 1;
  Start();
  const Task task = *Take(started_[0].incarnation);
  master_->OnExit(started_[0].name, ExitClass::kOk, "", At(1));
  Collect();
  ASSERT_EQ(started_.size(), 2U);
  EXPECT_EQ(Take(started_[1].incarnation)->shard, task.shard);
}

TEST_F(MasterTest, WhatCannotBeStartedIsNotTriedAgain) {
  Start();
  master_->OnExit(started_[0].name, ExitClass::kConfiguration, "no such file", At(1));
  ASSERT_TRUE(master_->finished());
  EXPECT_NE(master_->result().message().find("no such file"), std::string::npos);
}

TEST_F(MasterTest, NobodyReadsAheadWhatAnotherCouldBegin) {
  Start();
  const Incarnation one = started_[0].incarnation, two = started_[1].incarnation;
  std::vector<TaskId> held{Take(one)->id};
  ASSERT_TRUE(Take(two).has_value());
  // Two shards are left for two workers: one may be prefetched, the last may not.
  const Result<MasterLink::Answer> ahead = master_->Take(one, false, held, At(1));
  ASSERT_EQ(ahead->kind, MasterLink::Answer::Kind::kTask);
  held.push_back(ahead->task.id);
  EXPECT_EQ(master_->Take(two, false, {TaskId(2)}, At(1))->kind,
            MasterLink::Answer::Kind::kNothing);
}

TEST_F(MasterTest, SynchronousLanesAreShared) {
  options_.queue.lanes = 4;
  Start();
  const Incarnation one = started_[0].incarnation, two = started_[1].incarnation;
  ASSERT_TRUE(master_->Heartbeat(one, At(0)).ok());
  ASSERT_TRUE(master_->Heartbeat(two, At(0)).ok());
  std::vector<TaskId> held{Take(one)->id};
  for (;;) {
    const Result<MasterLink::Answer> more = master_->Take(one, false, held, At(1));
    if (more->kind != MasterLink::Answer::Kind::kTask) {
      break;
    }
    held.push_back(more->task.id);
  }
  EXPECT_EQ(held.size(), 2U);
}

TEST_F(MasterTest, EvaluationCountsEachShardOnceWhoeverDies) {
  options_.workers = 1;
  options_.queue.epochs = 1;
  options_.evaluation_shards = 70;
  options_.task = models::Task::kRegression;
  Start();
  FinishEpoch(started_[0].incarnation);
  // FinishEpoch stopped at the first evaluation task, which is lost with its holder.
  master_->OnExit(started_[0].name, ExitClass::kPreempted, "", At(1));
  Collect();
  const Incarnation worker = started_[1].incarnation;
  int64_t shards = 0;
  std::optional<Task> last;
  while (const std::optional<Task> task = Take(worker)) {
    ASSERT_EQ(task->kind, Task::Kind::kEvaluate);
    models::Metrics metrics(models::Task::kRegression, 1);
    const std::vector<double> predictions(task->shards.size(), 1.0F);
    const std::vector<double> labels(task->shards.size(), 3.0F);
    metrics.Add(predictions, labels, {});
    TaskReport report;
    report.task = task->id;
    report.done = true;
    report.rows = static_cast<int64_t>(task->shards.size());
    report.metrics = metrics.Serialize();
    EXPECT_TRUE(master_->Report(worker, report, At(1))->mine);
    if (!master_->finished()) {
      EXPECT_FALSE(master_->Report(worker, report, At(1))->mine) << "counted once";
    }
    shards += static_cast<int64_t>(task->shards.size());
    last = task;
  }
  EXPECT_EQ(shards, 70);
  ASSERT_TRUE(master_->finished());
  const TrainOutcome outcome = master_->Outcome();
  EXPECT_EQ(outcome.validation_rows, 70);
  const auto rmse = std::find_if(outcome.metrics.begin(), outcome.metrics.end(),
                                 [](const auto& metric) { return metric.first == "rmse"; });
  ASSERT_NE(rmse, outcome.metrics.end());
  EXPECT_NEAR(rmse->second, 2.0, 1e-6);
}

TEST_F(MasterTest, KeepsTheBestEpochAndStopsWhenPatienceIsOver) {
  options_.workers = 1;
  options_.queue.epochs = 10;
  options_.queue.shards = 1;
  options_.patience = 2;
  Start();
  const Incarnation worker = started_[0].incarnation;
  for (const double loss : {5.0, 3.0, 4.0, 3.5}) {
    const std::optional<Task> task = Take(worker);
    ASSERT_TRUE(task.has_value());
    TaskReport report = Done(*task);
    report.loss = loss * report.weight;
    ASSERT_TRUE(master_->Report(worker, report, At(1)).ok());
    Collect();
    if (loss > 3.2 && loss < 4.5) {
      continue;
    }
    EXPECT_FALSE(Take(worker).has_value()) << "not before the servers keep these weights";
    master_->OnWeightsKept("digest", At(1));
  }
  ASSERT_TRUE(master_->finished());
  EXPECT_EQ(kept_.size(), 2U);
  EXPECT_EQ(master_->Outcome().epochs, 4U);
  EXPECT_EQ(Count("early_stop"), 1);
}

TEST_F(MasterTest, AnEmptyTableFailsBeforeAnythingStarts) {
  options_.queue.shards = 0;
  master_ = std::make_unique<Master>(options_, At(0));
  EXPECT_TRUE(master_->finished());
  EXPECT_FALSE(master_->result().ok());
}

}  // namespace
}  // namespace sluice::elastic
