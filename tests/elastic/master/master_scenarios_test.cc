// Scenarios S, E and K that the master decides, by their numbers, on virtual time.
#include <algorithm>
#include <random>

#include "tests/elastic/master/master_steps.h"

namespace sluice::elastic {
namespace {

class MasterScenario : public MasterTest {
 protected:
  // Trains everything that is handed out.
  void Work(Incarnation worker, double now) {
    while (const std::optional<Task> task = Take(worker, now)) {
      ASSERT_TRUE(task->kind == Task::Kind::kTrain
                      ? master_->Report(worker, Done(*task), At(now)).ok()
                      : master_->Report(worker, Evaluated(*task, 0), At(now)).ok());
    }
  }
  static TaskReport Evaluated(const Task& task, float error) {
    models::Metrics metrics(models::Task::kRegression, 1);
    const std::vector<float> predictions(task.shards.size(), 1.0F + error);
    const std::vector<float> labels(task.shards.size(), 1.0F);
    metrics.Add(predictions, labels, {});
    TaskReport report;
    report.task = task.id;
    report.done = true;
    report.rows = static_cast<int64_t>(task.shards.size());
    report.metrics = metrics.Serialize();
    return report;
  }
  void Evaluate(int64_t shards) {
    options_.evaluation_shards = shards;
    options_.task = models::Task::kRegression;
  }
  double Metric(const std::string& name) const {
    for (const auto& [metric, value] : master_->Outcome().metrics) {
      if (metric == name) {
        return value;
      }
    }
    return std::numeric_limits<double>::quiet_NaN();
  }
};

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

TEST_F(MasterScenario, E1_EvaluationsComeInOrderAndNoneIsLost) {
  options_.queue.epochs = 3;
  Evaluate(64);
  Start();
  const Incarnation worker = started_[0].incarnation;
  while (const std::optional<Task> task = Take(worker)) {
    // Half of the rows are off by 4.5.
    const float error =
        task->kind == Task::Kind::kEvaluate && task->shards[0] == ShardId(0) ? 4.5F : 0;
    ASSERT_TRUE(
        master_
            ->Report(worker,
                     task->kind == Task::Kind::kTrain ? Done(*task) : Evaluated(*task, error),
                     At(1))
            .ok());
  }
  Collect();
  std::vector<std::string> epochs;
  for (const Master::Event& event : events_) {
    if (event.kind == "evaluation_done") {
      epochs.push_back(event.detail.substr(0, 7));
    }
  }
  EXPECT_EQ(epochs, (std::vector<std::string>{"epoch 1", "epoch 2", "epoch 3"}));
  EXPECT_NEAR(Metric("mse"), 10.125, 1e-6);
}

TEST_F(MasterScenario, E2_ADeathInTheMiddleOfAnEvaluationCountsNothingTwice) {
  options_.queue.epochs = 1;
  Evaluate(64);
  Start();
  const Incarnation one = started_[0].incarnation, two = started_[1].incarnation;
  std::optional<Task> task = Take(one);
  while (task->kind == Task::Kind::kTrain) {
    ASSERT_TRUE(master_->Report(one, Done(*task), At(1)).ok());
    task = Take(one);
  }
  const Task other = *Take(two);
  ASSERT_TRUE(master_->Report(two, Evaluated(other, 3), At(1))->mine);
  master_->OnExit(started_[0].name, ExitClass::kPreempted, "", At(1));
  const Task again = *Take(two);
  EXPECT_EQ(again.shards, task->shards);
  ASSERT_TRUE(master_->Report(two, Evaluated(again, 1), At(1))->mine);
  ASSERT_TRUE(master_->finished());
  EXPECT_EQ(master_->Outcome().validation_rows, 64);
  EXPECT_NEAR(Metric("mse"), 5, 1e-6);
}

TEST_F(MasterScenario, E3_NobodyTrainsWhileAVersionIsEvaluated) {
  options_.queue.epochs = 2;
  Evaluate(64);
  Start();
  const Incarnation one = started_[0].incarnation, two = started_[1].incarnation;
  std::vector<Task> evaluations;
  while (evaluations.empty()) {
    const Task task = *Take(one);
    if (task.kind == Task::Kind::kTrain) {
      EXPECT_EQ(task.epoch, Epoch(1));
      ASSERT_TRUE(master_->Report(one, Done(task), At(1)).ok());
    } else {
      evaluations.push_back(task);
    }
  }
  // Every lease of the epoch has ended and no other is given: the weights do not change.
  EXPECT_EQ(master_->queue().leased(), 0U);
  evaluations.push_back(*Take(two));
  EXPECT_EQ(evaluations[1].kind, Task::Kind::kEvaluate);
  EXPECT_FALSE(Take(two, 1, {evaluations[1].id}).has_value());
  ASSERT_TRUE(master_->Report(two, Evaluated(evaluations[1], 0), At(1))->mine);
  EXPECT_FALSE(Take(two).has_value()) << "one group is still being evaluated";
  ASSERT_TRUE(master_->Report(one, Evaluated(evaluations[0], 0), At(1))->mine);
  EXPECT_EQ(Take(two)->epoch, Epoch(2));
}

TEST_F(MasterScenario, E4_AnEvaluationThatCannotBeDoneFailsTheJobByItsText) {
  options_.queue.epochs = 1;
  Evaluate(1);
  Start();
  const Incarnation worker = started_[0].incarnation;
  std::optional<Task> task = Take(worker);
  while (task->kind == Task::Kind::kTrain) {
    ASSERT_TRUE(master_->Report(worker, Done(*task), At(1)).ok());
    task = Take(worker);
  }
  ASSERT_TRUE(master_->Fail(worker, task->id, Internal("column y is not a number"), At(1)).ok());
  ASSERT_TRUE(master_->finished());
  EXPECT_EQ(master_->result().message(), "column y is not a number");
}

TEST_F(MasterScenario, E5_MergedMetricsAreThoseOfAllRows) {
  std::mt19937_64 random(3);
  models::Metrics merged(models::Task::kBinary, 1), whole(models::Task::kBinary, 1);
  std::vector<std::pair<float, float>> rows;
  for (int shard = 0; shard < 20; ++shard) {
    models::Metrics part(models::Task::kBinary, 1);
    std::vector<float> predictions, labels;
    for (int i = 0; i < 500; ++i) {
      labels.push_back(static_cast<float>(random() % 2));
      const float noise = static_cast<float>(random() % 10'000) / 10'000.0F;
      predictions.push_back(0.3F * labels.back() + 0.69F * noise);
      rows.emplace_back(predictions.back(), labels.back());
    }
    part.Add(predictions, labels, {});
    merged.Merge(*models::Metrics::Deserialize(part.Serialize()));
    whole.Add(predictions, labels, {});
  }
  std::sort(rows.begin(), rows.end());
  double below = 0, wins = 0, positives = 0;
  for (size_t i = 0; i < rows.size();) {
    size_t end = i;
    double negatives = 0, same = 0;
    for (; end < rows.size() && rows[end].first == rows[i].first; ++end) {
      (rows[end].second > 0 ? same : negatives) += 1;
    }
    wins += same * (below + negatives / 2);
    below += negatives;
    positives += same;
    i = end;
  }
  const std::vector<std::pair<std::string, double>> values = merged.Values();
  EXPECT_EQ(values.size(), whole.Values().size());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i].second, whole.Values()[i].second, 1e-9) << values[i].first;
  }
  const auto auc = std::find_if(values.begin(), values.end(),
                                [](const auto& metric) { return metric.first == "auc"; });
  ASSERT_NE(auc, values.end());
  EXPECT_NEAR(auc->second, wins / (positives * below), 1e-4);
}

TEST_F(MasterScenario, E6_StopsAtTheSameEpochWhoeverWorks) {
  options_.queue.epochs = 10;
  options_.queue.shards = 2;
  options_.patience = 1;
  for (const size_t workers : {size_t{1}, size_t{2}}) {
    started_.clear();
    kept_.clear();
    Start();
    const double losses[] = {5, 3, 4, 1};
    for (size_t epoch = 0; !master_->finished(); ++epoch) {
      for (size_t shard = 0; shard < 2; ++shard) {
        const Incarnation worker = started_[shard % workers].incarnation;
        TaskReport report = Done(*Take(worker));
        report.loss = losses[epoch] * report.weight;
        ASSERT_TRUE(master_->Report(worker, report, At(1)).ok());
      }
      Collect();
      master_->OnWeightsKept("digest", At(1));
    }
    EXPECT_EQ(master_->Outcome().epochs, 3U);
    EXPECT_EQ(kept_.size(), 2U) << "each better version is kept once";
  }
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
