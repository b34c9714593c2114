#include "elastic/parameters/parameter_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "tests/elastic/parameters/parameter_shard_fixture.h"

namespace sluice::elastic {
namespace {

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

}  // namespace
}  // namespace sluice::elastic
