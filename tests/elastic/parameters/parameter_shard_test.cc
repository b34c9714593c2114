#include "elastic/parameters/parameter_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

// A shard of SmallPlan's network with plain gradient descent, rate 0.1: effects can be computed by
// hand.
class ParameterShardTest : public ::testing::Test {
 protected:
  ParameterShardTest() : plan_(SmallPlan(1, 64)) {
    SetOptimizer("SGD", 0.1);
    network_ = models::Network::Make(plan_.model()).value();
  }
  void SetOptimizer(const std::string& name, double rate) {
    models::OptimizerSpec& optimizer = *plan_.mutable_model()->mutable_deep_optimizer();
    optimizer.set_name(name);
    optimizer.mutable_arguments(0)->set_number(rate);
  }
  std::unique_ptr<ParameterShard> Make(uint32_t partitions = 1, bool synchronous = false) const {
    return ParameterShard::Make(plan_.model(), *network_, {partitions, synchronous, false}, nullptr)
        .value();
  }

  // A gradient of `value` everywhere, for the rows `ids` of the first table.
  struct Owned {
    std::vector<uint32_t> partitions;
    std::vector<int64_t> versions;
    std::vector<std::vector<float>> dense;
    std::vector<std::vector<int64_t>> ids;
    std::vector<std::vector<float>> values;
    PushRequest request;
  };
  // `partitions`: those of a job of `of`; empty: all.
  Owned Gradient(BatchIdentity batch, float value, const std::vector<int64_t>& ids,
                 int64_t version = 0, uint32_t of = 1,
                 std::vector<uint32_t> partitions = {}) const {
    const PartitionLayout layout(*network_, of);
    if (partitions.empty()) {
      partitions.resize(of);
      std::iota(partitions.begin(), partitions.end(), 0);
    }
    Owned owned;
    owned.partitions = std::move(partitions);
    owned.versions.assign(owned.partitions.size(), version);
    owned.ids.resize(network_->tables().size());
    owned.values.resize(network_->tables().size());
    for (uint32_t partition : owned.partitions) {
      for (const PartitionLayout::Chunk& chunk : layout.chunks(partition)) {
        owned.dense.emplace_back(chunk.size(), value);
      }
      std::copy_if(ids.begin(), ids.end(), std::back_inserter(owned.ids[0]),
                   [&](int64_t id) { return layout.PartitionOf(0, id) == partition; });
    }
    owned.values[0].assign(owned.ids[0].size() * network_->tables()[0].dimension, value);
    owned.request.partitions = owned.partitions;
    owned.request.versions = owned.versions;
    owned.request.batch = batch;
    owned.request.weight = 1;
    for (const std::vector<float>& tensor : owned.dense) {
      owned.request.dense.emplace_back(tensor);
    }
    for (size_t t = 0; t < owned.ids.size(); ++t) {
      owned.request.tables.push_back({owned.ids[t], owned.values[t]});
    }
    return owned;
  }
  std::vector<float> Row(ParameterShard& shard, int64_t id, BatchIdentity step = {},
                         Purpose purpose = Purpose::kLatest, int64_t* version = nullptr) const {
    const uint32_t partition = shard.rules().layout.PartitionOf(0, id);
    std::vector<std::vector<int64_t>> ids(network_->tables().size());
    ids[0] = {id};
    std::vector<float> row(network_->tables()[0].dimension);
    PullRequest pull;
    pull.partitions = std::span(&partition, 1);
    pull.batch = step;
    pull.purpose = purpose;
    int64_t read = 0;
    PullTarget target;
    target.versions = std::span(&read, 1);
    for (const std::vector<int64_t>& table : ids) {
      pull.tables.emplace_back(table);
      target.tables.push_back(row.data());
    }
    const Status status = shard.Pull(pull, target, 0.01);
    EXPECT_TRUE(status.ok()) << status.ToString();
    if (version != nullptr) {
      *version = read;
    }
    return row;
  }
  std::string Bits(const ParameterShard& shard) const {
    return models::SaveWeights(shard.ExportAll(*network_).value());
  }
  static BatchIdentity Batch(int64_t shard, int64_t batch, uint32_t attempt = 1) {
    BatchIdentity identity;
    identity.shard = ShardId(shard);
    identity.batch = BatchIndex(batch);
    identity.attempt = Attempt(attempt);
    return identity;
  }
  static BatchIdentity Lane(uint32_t lane, uint32_t lanes, int64_t step, int64_t round = 0) {
    BatchIdentity identity;
    identity.batch = BatchIndex(step);
    identity.round = RoundIndex(round);
    identity.lane = lane;
    identity.lanes = lanes;
    identity.shard = ShardId(lane);
    return identity;
  }

  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
};

TEST_F(ParameterShardTest, P6_SamePushIsAppliedOnce) {
  const auto shard = Make();
  const std::vector<float> before = Row(*shard, 3);
  const Owned push = Gradient(Batch(0, 0), 1, {3});
  ASSERT_TRUE(shard->Push(push.request).ok());
  ASSERT_TRUE(shard->Push(push.request).ok());
  EXPECT_EQ(shard->version(), 1);
  EXPECT_FLOAT_EQ(Row(*shard, 3)[0], before[0] - 0.1F);
  EXPECT_EQ(shard->AppliedBatches(kNoMapVersion, Epoch(1), ShardId(0)).value(), BatchIndex(1));
}

TEST_F(ParameterShardTest, ALoweredLearningRateIsThatOfTheBatch) {
  for (const bool synchronous : {false, true}) {
    const auto shard = Make(1, synchronous);
    const std::vector<float> before = Row(*shard, 3, Lane(0, synchronous ? 1 : 0, 0));
    BatchIdentity batch = synchronous ? Lane(0, 1, 0) : Batch(0, 0);
    batch.rate_cuts = 2;
    ASSERT_TRUE(shard->Push(Gradient(batch, 1, {3}).request).ok());
    const std::vector<float> after = Row(*shard, 3, Lane(0, synchronous ? 1 : 0, 1));
    EXPECT_NEAR(after[0], before[0] - 0.1F * 0.3F * 0.3F, 1e-6);
  }
}

// Training sees the initial value of a row that no batch has touched; evaluation sees what a
// prediction does, in which such a row contributes nothing.
TEST_F(ParameterShardTest, EvaluationsSeeNothingOfUntrainedRows) {
  const auto shard = Make();
  const std::vector<float> nothing(network_->tables()[0].dimension, 0.0F);
  EXPECT_NE(Row(*shard, 3, {}, Purpose::kLatest), nothing);
  EXPECT_EQ(Row(*shard, 3, {}, Purpose::kEvaluation), nothing);
  ASSERT_TRUE(shard->Push(Gradient(Batch(0, 0), 1, {3}).request).ok());
  EXPECT_EQ(Row(*shard, 3, {}, Purpose::kEvaluation), Row(*shard, 3, {}, Purpose::kLatest));
  EXPECT_NE(Row(*shard, 3, {}, Purpose::kEvaluation), nothing);
}

TEST_F(ParameterShardTest, OldEpochsAreRepetitions) {
  const auto shard = Make();
  BatchIdentity later = Batch(0, 0);
  later.epoch = Epoch(2);
  ASSERT_TRUE(shard->Push(Gradient(later, 1, {3}).request).ok());
  ASSERT_TRUE(shard->Push(Gradient(Batch(0, 7), 1, {3}).request).ok());
  EXPECT_EQ(shard->version(), 1);
}

TEST_F(ParameterShardTest, S12_PushesOfAnOlderLeaseAreRefused) {
  const auto shard = Make();
  ASSERT_TRUE(shard->Push(Gradient(Batch(0, 0, 2), 1, {3}).request).ok());
  const Status zombie = shard->Push(Gradient(Batch(0, 1, 1), 1, {3}).request);
  EXPECT_EQ(zombie.code(), Code::kAborted);
  EXPECT_EQ(shard->version(), 1);
}

TEST_F(ParameterShardTest, ABatchCannotOvertakeAnother) {
  const auto shard = Make();
  ASSERT_TRUE(shard->Push(Gradient(Batch(0, 0), 1, {3}).request).ok());
  EXPECT_EQ(shard->Push(Gradient(Batch(0, 2), 1, {3}).request).code(), Code::kFailedPrecondition);
  EXPECT_EQ(shard->AppliedBatches(kNoMapVersion, Epoch(1), ShardId(0)).value(), BatchIndex(1));
}

TEST_F(ParameterShardTest, P3_RowsDoNotDependOnWhoAsksFirst) {
  const auto one = Make();
  const auto other = Make();
  const auto third = Make(8);
  std::vector<std::vector<float>> forwards, backwards;
  for (int64_t id = 0; id < 50; ++id) {
    forwards.push_back(Row(*one, id));
    backwards.push_back(Row(*other, 49 - id));
    EXPECT_EQ(Row(*third, id), forwards.back());
  }
  for (size_t id = 0; id < 50; ++id) {
    EXPECT_EQ(forwards[id], backwards[49 - id]);
  }
  EXPECT_EQ(one->rows(), 0) << "reading creates nothing";
  ASSERT_TRUE(one->Push(Gradient(Batch(0, 0), 0, {7, 9}).request).ok());
  EXPECT_EQ(one->rows(), 2);
  EXPECT_EQ(Row(*one, 7), forwards[7]);
}

TEST_F(ParameterShardTest, P4_P5_NoUpdateIsLostAmongThreads) {
  const auto shard = Make();
  const std::vector<float> before = Row(*shard, 3);
  constexpr int kThreads = 4, kPushes = 300;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPushes; ++i) {
        const Owned push = Gradient(Batch(t, i), 0.01F, {3, 4, t}, shard->version());
        ASSERT_TRUE(shard->Push(push.request).ok());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(shard->version(), kThreads * kPushes);
  EXPECT_LT(Row(*shard, 4)[0], before[0]);
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(shard->AppliedBatches(kNoMapVersion, Epoch(1), ShardId(t)).value(),
              BatchIndex(kPushes));
  }
}

TEST_F(ParameterShardTest, P8_StaleGradientsCountLess) {
  const auto shard = Make();
  for (int64_t batch = 0; batch < 10; ++batch) {
    ASSERT_TRUE(shard->Push(Gradient(Batch(0, batch), 0, {}, batch).request).ok());
  }
  const std::vector<float> before = Row(*shard, 3);
  const Owned push = Gradient(Batch(1, 0), 1, {3}, 6);  // four versions ago
  ASSERT_TRUE(shard->Push(push.request).ok());
  EXPECT_NEAR(Row(*shard, 3)[0], before[0] - 0.1F / 4, 1e-6F);
}

TEST_F(ParameterShardTest, P17_WrongPushesAreTypedErrorsAndChangeNothing) {
  const auto shard = Make();
  Owned nan = Gradient(Batch(0, 0), std::nanf(""), {3});
  EXPECT_EQ(shard->Push(nan.request).sqlstate(), "22003");
  Owned infinite = Gradient(Batch(0, 0), 1, {3});
  infinite.values[0][1] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(shard->Push(infinite.request).sqlstate(), "22003");
  EXPECT_EQ(shard->Push(Gradient(Batch(0, 0), 1, {-1}).request).code(), Code::kInvalidArgument);
  EXPECT_EQ(shard->Push(Gradient(Batch(0, 0), 1, {1'000'000}).request).code(),
            Code::kInvalidArgument);
  Owned shape = Gradient(Batch(0, 0), 1, {3});
  shape.request.dense.pop_back();
  EXPECT_EQ(shard->Push(shape.request).code(), Code::kInvalidArgument);
  Owned half_row = Gradient(Batch(0, 0), 1, {3});
  half_row.request.tables[0].values = half_row.request.tables[0].values.subspan(1);
  EXPECT_EQ(shard->Push(half_row.request).code(), Code::kInvalidArgument);
  EXPECT_EQ(shard->version(), 0);
  EXPECT_EQ(shard->rows(), 0);
  ASSERT_TRUE(shard->Push(Gradient(Batch(0, 0), 1, {3}).request).ok());
}

TEST_F(ParameterShardTest, P2_FreshRowsHaveFreshSlots) {
  for (const char* optimizer : {"Adam", "Adagrad", "Ftrl"}) {
    SetOptimizer(optimizer, 0.01);
    const auto shard = Make();
    std::vector<int64_t> ids;
    for (int64_t id = 0; id < 50; ++id) {
      ids.push_back(id);
    }
    for (int64_t batch = 0; batch < 5; ++batch) {
      ASSERT_TRUE(shard->Push(Gradient(Batch(0, batch), 0.5F, ids).request).ok());
    }
    const models::NetworkWeights weights = shard->ExportAll(*network_).value();
    for (const float value : weights.tables[0].values) {
      EXPECT_TRUE(std::isfinite(value)) << optimizer;
    }
  }
}

TEST_F(ParameterShardTest, PartitionsMakeTheWhole) {
  const auto whole = Make();
  const auto cut = Make(8);
  for (int64_t batch = 0; batch < 3; ++batch) {
    const std::vector<int64_t> ids{1, 5, 9, 20, 33 + batch};
    ASSERT_TRUE(whole->Push(Gradient(Batch(0, batch), 1, ids, batch).request).ok());
    ASSERT_TRUE(cut->Push(Gradient(Batch(0, batch), 1, ids, batch, 8).request).ok());
  }
  EXPECT_EQ(Bits(*cut), Bits(*whole));
  Owned misplaced = Gradient(Batch(0, 3), 1, {1, 5, 9, 20}, 3, 8);
  std::reverse(misplaced.ids[0].begin(), misplaced.ids[0].end());
  EXPECT_EQ(cut->Push(misplaced.request).code(), Code::kInvalidArgument);
}

TEST_F(ParameterShardTest, ARequestByAnotherMapChangesNothing) {
  const auto shard = Make(4);
  shard->Serve(MapVersion(7), {0, 1, 2, 3});
  Owned push = Gradient(Batch(0, 0), 1, {3}, 0, 4);
  push.request.map_version = MapVersion(6);
  EXPECT_EQ(shard->Push(push.request).code(), Code::kNotFound);
  EXPECT_EQ(shard->AppliedBatches(MapVersion(6), Epoch(1), ShardId(0)).status().code(),
            Code::kNotFound);
  EXPECT_EQ(shard->version(), 0);
  push.request.map_version = MapVersion(7);
  EXPECT_TRUE(shard->Push(push.request).ok());
}

// A moved partition takes its windows along: a batch that reached only some partitions is
// completed, and nothing is applied twice.
TEST_F(ParameterShardTest, S13_AMovedPartitionRemembersItsBatches) {
  const auto from = Make(4);
  const auto to = Make(4);
  ASSERT_TRUE(from->Push(Gradient(Batch(0, 0), 1, {1, 2, 3, 4}, 0, 4).request).ok());
  for (uint32_t partition : {0U, 2U}) {
    ASSERT_TRUE(to->Load(partition, from->Save(partition).value()).ok());
  }
  const Owned again = Gradient(Batch(0, 0), 1, {1, 2, 3, 4}, 0, 4);
  ASSERT_TRUE(to->Push(again.request).ok());
  EXPECT_EQ(Bits(*to), Bits(*from));
  for (uint32_t partition = 0; partition < 4; ++partition) {
    EXPECT_EQ(to->version(partition), 1);
  }
}

TEST_F(ParameterShardTest, ContinuingForgetsNothing) {
  for (const char* optimizer : {"Ftrl", "Adam", "Adagrad"}) {
    SetOptimizer(optimizer, 0.01);
    const auto first = Make();
    for (int64_t batch = 0; batch < 5; ++batch) {
      ASSERT_TRUE(first->Push(Gradient(Batch(0, batch), 0.5F, {3, 4}).request).ok());
    }
    const models::NetworkWeights base = first->ExportAll(*network_).value();
    const auto second = ParameterShard::Make(plan_.model(), *network_, {}, &base).value();
    ASSERT_TRUE(second->Push(Gradient(Batch(0, 0), 0, {3, 4}).request).ok());
    const models::NetworkWeights after = second->ExportAll(*network_).value();
    for (size_t i = 0; i < base.dense[0].size(); ++i) {
      EXPECT_NEAR(after.dense[0][i], base.dense[0][i], 1e-4F) << optimizer;
    }
    ASSERT_EQ(after.tables[0].ids, base.tables[0].ids);
    for (size_t i = 0; i < base.tables[0].values.size(); ++i) {
      EXPECT_NEAR(after.tables[0].values[i], base.tables[0].values[i], 1e-4F) << optimizer;
    }
  }
}

TEST_F(ParameterShardTest, KeptWeightsAreExported) {
  const auto shard = Make();
  ASSERT_TRUE(shard->Push(Gradient(Batch(0, 0), 1, {3}).request).ok());
  ASSERT_TRUE(shard->KeepBest(kNoMapVersion, {1, {}}).ok());
  const std::string best = Bits(*shard);
  ASSERT_TRUE(shard->Push(Gradient(Batch(0, 1), 1, {4}).request).ok());
  EXPECT_EQ(Bits(*shard), best);
}

// A copy is complete before the next push; otherwise a replica would miss it.
TEST_F(ParameterShardTest, NothingIsPushedBeforeTheLastPartOfACopyIsOnItsWay) {
  const auto shard = Make();
  std::atomic<bool> pushed = false;
  std::jthread pusher;
  const auto last = [&] {
    pusher = std::jthread([&] {
      EXPECT_TRUE(shard->Push(Gradient(Batch(0, 0), 0, {3}).request).ok());
      pushed = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_FALSE(pushed);
    return Status();
  };
  ASSERT_TRUE(shard
                  ->Save(
                      0, kMaxPartBytes, [](std::string) { return Status(); }, last)
                  .ok());
  pusher.join();
  EXPECT_TRUE(pushed);
}

TEST_F(ParameterShardTest, P9_AStepClosesOverAllLanesInAnyOrder) {
  std::string bits;
  for (const std::vector<uint32_t>& order :
       {std::vector<uint32_t>{0, 1, 2, 3}, {3, 1, 0, 2}, {2, 3, 1, 0}}) {
    const auto shard = Make(1, true);
    for (uint32_t lane : order) {
      EXPECT_EQ(shard->version(), 0);
      const float value = 0.1F * static_cast<float>(lane + 1);
      const Owned push = Gradient(Lane(lane, 4, 0), value, {3, static_cast<int64_t>(lane)});
      ASSERT_TRUE(shard->Push(push.request).ok());
      ASSERT_TRUE(shard->Push(push.request).ok()) << "a repetition is acknowledged";
    }
    EXPECT_EQ(shard->version(), 1);
    const std::string now = Bits(*shard);
    EXPECT_TRUE(bits.empty() || bits == now);
    bits = now;
  }
}

// Four workers, then three, then five, while a step is open; and the partition moves to another
// server in the middle of one. Each worker pushes its lanes, some of them again after another
// worker: the steps close, with the bits of one worker that is never disturbed.
TEST_F(ParameterShardTest, P10_AStepClosesOverWhoeverHoldsItsLanes) {
  SetOptimizer("Adam", 0.01);
  const auto push = [&](ParameterShard& shard, int64_t step, const std::vector<uint32_t>& lanes) {
    for (uint32_t lane : lanes) {
      const float value = 0.01F * static_cast<float>(step * 8 + lane + 1);
      const Owned gradient = Gradient(Lane(lane, 8, step), value, {3, static_cast<int64_t>(lane)});
      ASSERT_TRUE(shard.Push(gradient.request).ok());
    }
  };
  const auto undisturbed = Make(1, true);
  for (int64_t step = 0; step < 3; ++step) {
    push(*undisturbed, step, {0, 1, 2, 3, 4, 5, 6, 7});
  }
  const auto first = Make(1, true);
  for (const std::vector<uint32_t>& four : {std::vector<uint32_t>{0, 4}, {5}, {2, 6}, {3}}) {
    push(*first, 0, four);  // the second died before lane 1, the last before lane 7
  }
  EXPECT_EQ(first->version(), 0);
  push(*first, 0, {7, 3});  // by the remaining three, which do not know what was pushed
  push(*first, 0, {1, 5});
  EXPECT_EQ(first->version(), 1);
  for (const std::vector<uint32_t>& three : {std::vector<uint32_t>{0, 3}, {1, 4}}) {
    push(*first, 1, three);
  }
  const auto second = Make(1, true);
  ASSERT_TRUE(second->Load(0, first->Save(0).value()).ok());
  for (const std::vector<uint32_t>& five :
       {std::vector<uint32_t>{0, 5}, {1, 6}, {2, 7}, {3}, {4}}) {
    push(*second, 1, five);
  }
  EXPECT_EQ(second->version(), 2);
  push(*second, 2, {7, 6, 5, 4, 3, 2, 1, 0});
  EXPECT_EQ(second->version(), 3);
  EXPECT_EQ(Bits(*second), Bits(*undisturbed));
}

TEST_F(ParameterShardTest, AStepWaitsForTheOneBefore) {
  const auto shard = Make(1, true);
  ASSERT_TRUE(shard->Push(Gradient(Lane(0, 2, 0), 1, {3}).request).ok());
  std::vector<int64_t> ids{3};
  std::vector<float> row(network_->tables()[0].dimension);
  const uint32_t partition = 0;
  int64_t version = 0;
  PullRequest pull;
  pull.partitions = std::span(&partition, 1);
  pull.batch = Lane(0, 2, 1);
  pull.tables.assign(network_->tables().size(), ids);
  PullTarget target;
  target.versions = std::span(&version, 1);
  target.tables.assign(network_->tables().size(), row.data());
  EXPECT_EQ(shard->Pull(pull, target, 0.001).code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(shard->Push(Gradient(Lane(1, 2, 0), 1, {3}).request).ok());
  EXPECT_TRUE(shard->Pull(pull, target, 0.001).ok());
}

// A server that is one step ahead of another still has the values that a lane's new holder needs.
TEST_F(ParameterShardTest, ValuesFromBeforeTheLastStepAreKept) {
  const auto shard = Make(1, true);
  const std::vector<float> before = Row(*shard, 3, Lane(0, 2, 0), Purpose::kStep);
  for (uint32_t lane : {0U, 1U}) {
    ASSERT_TRUE(shard->Push(Gradient(Lane(lane, 2, 0), 1, {3}).request).ok());
  }
  int64_t version = -1;
  EXPECT_EQ(Row(*shard, 3, Lane(1, 2, 0), Purpose::kStep, &version), before);
  EXPECT_EQ(version, 0);
  EXPECT_NE(Row(*shard, 3, Lane(1, 2, 1), Purpose::kStep, &version), before);
  EXPECT_EQ(version, 1);
}

TEST_F(ParameterShardTest, LanesMayEndAtDifferentSteps) {  // R5
  const auto shard = Make(1, true);
  const auto end = [&](uint32_t lane, int64_t step) {
    const uint32_t partition = 0;
    PushRequest request;
    request.partitions = std::span(&partition, 1);
    request.batch = Lane(lane, 2, step);
    request.end = true;
    return shard->Push(request);
  };
  ASSERT_TRUE(shard->Push(Gradient(Lane(0, 2, 0), 1, {3}).request).ok());
  ASSERT_TRUE(end(0, 1).ok()) << "its last step may still be open";
  ASSERT_TRUE(shard->Push(Gradient(Lane(1, 2, 0), 1, {3}).request).ok());
  EXPECT_EQ(shard->version(), 1);
  ASSERT_TRUE(shard->Push(Gradient(Lane(1, 2, 1), 1, {3}).request).ok());
  EXPECT_EQ(shard->version(), 2) << "the step closes over the lane that is left";
  ASSERT_TRUE(end(1, 2).ok());
  ASSERT_TRUE(shard->Push(Gradient(Lane(0, 1, 0, 1), 1, {3}).request).ok());
  EXPECT_EQ(shard->version(), 3) << "the next round has one lane";
}

}  // namespace
}  // namespace sluice::elastic
