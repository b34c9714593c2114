// Scenarios E of evaluations that the master decides, by their numbers, on virtual time.
#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/elastic/master/master_scenario.h"

namespace sluice::elastic {
namespace {

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
  std::vector<std::pair<double, double>> rows;
  for (int shard = 0; shard < 20; ++shard) {
    models::Metrics part(models::Task::kBinary, 1);
    std::vector<double> predictions, labels;
    for (int i = 0; i < 500; ++i) {
      const float label = random() % 2 == 0 ? 0.0F : 1.0F;
      const float noise = static_cast<float>(random() % 10'000) / 10'000.0F;
      labels.push_back(label);
      predictions.push_back(0.3F * label + 0.69F * noise);
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

}  // namespace
}  // namespace sluice::elastic
