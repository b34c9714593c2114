#include "elastic/parameter_shard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "elastic/grpc_links.h"
#include "tests/elastic/small_job.h"

namespace sluice::elastic {
namespace {

// A shard of SmallPlan's network with plain gradient descent, rate 0.1: effects can be told by
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
  std::unique_ptr<ParameterShard> Make(Placement placement = {}, bool synchronous = false) const {
    return ParameterShard::Make(plan_.model(), *network_, {placement, synchronous}, nullptr)
        .value();
  }

  // A gradient of `value` everywhere, for the rows `ids` of the first table.
  struct Owned {
    std::vector<std::vector<float>> dense;
    std::vector<std::vector<int64_t>> ids;
    std::vector<std::vector<float>> values;
    PushRequest request;
  };
  Owned Gradient(BatchIdentity batch, float value, std::vector<int64_t> ids,
                 Placement placement = {}) const {
    Owned owned;
    for (const models::DenseTensor& tensor : network_->dense()) {
      const auto [begin, end] = placement.Slice(tensor.size());
      owned.dense.emplace_back(end - begin, value);
    }
    owned.ids.resize(network_->tables().size());
    owned.values.resize(network_->tables().size());
    owned.ids[0] = std::move(ids);
    owned.values[0].assign(owned.ids[0].size() * network_->tables()[0].dimension, value);
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
                         bool evaluation = true, int64_t* version = nullptr) const {
    std::vector<std::vector<int64_t>> ids(network_->tables().size());
    ids[0] = {id};
    std::vector<float> row(network_->tables()[0].dimension);
    PullRequest pull;
    pull.batch = step;
    pull.evaluation = evaluation;
    PullTarget target;
    for (const std::vector<int64_t>& table : ids) {
      pull.tables.emplace_back(table);
      target.tables.push_back(row.data());
    }
    const Result<int64_t> got = shard.Pull(pull, target, 0.01);
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    if (version != nullptr && got.ok()) {
      *version = *got;
    }
    return row;
  }
  static BatchIdentity Batch(int64_t shard, int64_t batch, uint32_t attempt = 1) {
    BatchIdentity identity;
    identity.shard = shard;
    identity.batch = batch;
    identity.attempt = attempt;
    return identity;
  }
  static BatchIdentity Lane(uint32_t lane, uint32_t lanes, int64_t step, int64_t round = 0) {
    BatchIdentity identity;
    identity.batch = step;
    identity.round = round;
    identity.lane = lane;
    identity.lanes = lanes;
    identity.shard = lane;
    return identity;
  }

  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
};

TEST_F(ParameterShardTest, SamePushIsAppliedOnce) {  // P6
  const auto shard = Make();
  const std::vector<float> before = Row(*shard, 3);
  const Owned push = Gradient(Batch(0, 0), 1, {3});
  ASSERT_TRUE(shard->Push(push.request).ok());
  ASSERT_TRUE(shard->Push(push.request).ok());
  EXPECT_EQ(shard->version(), 1);
  EXPECT_FLOAT_EQ(Row(*shard, 3)[0], before[0] - 0.1F);
  EXPECT_EQ(shard->AppliedBatches(1, 0), 1);
}

TEST_F(ParameterShardTest, OldEpochsAreRepetitions) {
  const auto shard = Make();
  BatchIdentity later = Batch(0, 0);
  later.epoch = 2;
  ASSERT_TRUE(shard->Push(Gradient(later, 1, {3}).request).ok());
  ASSERT_TRUE(shard->Push(Gradient(Batch(0, 7), 1, {3}).request).ok());
  EXPECT_EQ(shard->version(), 1);
}

TEST_F(ParameterShardTest, PushesOfAnOlderLeaseAreRefused) {  // S12
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
  EXPECT_EQ(shard->AppliedBatches(1, 0), 1);
}

TEST_F(ParameterShardTest, RowsDoNotDependOnWhoAsksFirst) {  // P3
  const auto one = Make();
  const auto other = Make();
  const auto third = Make({1, 2});
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

TEST_F(ParameterShardTest, NoUpdateIsLostAmongThreads) {  // P4, P5
  const auto shard = Make();
  const std::vector<float> before = Row(*shard, 3);
  constexpr int kThreads = 4, kPushes = 300;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPushes; ++i) {
        Owned push = Gradient(Batch(t, i), 0.01F, {3, 4, t});
        push.request.version = shard->version();
        ASSERT_TRUE(shard->Push(push.request).ok());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(shard->version(), kThreads * kPushes);
  EXPECT_LT(Row(*shard, 4)[0], before[0]);
  for (int t = 0; t < kThreads; ++t) {
    EXPECT_EQ(shard->AppliedBatches(1, t), kPushes);
  }
}

TEST_F(ParameterShardTest, StaleGradientsCountLess) {  // P8
  const auto shard = Make();
  for (int64_t batch = 0; batch < 10; ++batch) {
    Owned push = Gradient(Batch(0, batch), 0, {});
    push.request.version = batch;
    ASSERT_TRUE(shard->Push(push.request).ok());
  }
  const std::vector<float> before = Row(*shard, 3);
  Owned push = Gradient(Batch(1, 0), 1, {3});
  push.request.version = 6;  // four versions ago
  ASSERT_TRUE(shard->Push(push.request).ok());
  EXPECT_NEAR(Row(*shard, 3)[0], before[0] - 0.1F / 4, 1e-6F);
}

TEST_F(ParameterShardTest, WrongPushesAreTypedErrorsAndChangeNothing) {  // P17
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

TEST_F(ParameterShardTest, FreshRowsHaveFreshSlots) {  // P2
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
    const models::NetworkWeights weights = shard->Export();
    for (const float value : weights.tables[0].values) {
      EXPECT_TRUE(std::isfinite(value)) << optimizer;
    }
  }
}

TEST_F(ParameterShardTest, PartsOfServersMakeTheWhole) {
  const auto whole = Make();
  std::vector<models::NetworkWeights> parts;
  const Owned all = Gradient(Batch(0, 0), 1, {1, 5, 9, 20, 33});
  ASSERT_TRUE(whole->Push(all.request).ok());
  for (uint32_t server = 0; server < 3; ++server) {
    const Placement placement{server, 3};
    std::vector<int64_t> mine;
    for (int64_t id : {1, 5, 9, 20, 33}) {
      if (Placement::ServerOf(0, id, 3) == server) {
        mine.push_back(id);
      }
    }
    const auto part = Make(placement);
    ASSERT_TRUE(part->Push(Gradient(Batch(0, 0), 1, mine, placement).request).ok());
    parts.push_back(part->Export());
  }
  const Result<models::NetworkWeights> merged = MergeParts(parts, *network_);
  ASSERT_TRUE(merged.ok()) << merged.status().ToString();
  EXPECT_EQ(models::SaveWeights(*merged), models::SaveWeights(whole->Export()));
}

TEST_F(ParameterShardTest, ContinuingForgetsNothing) {
  for (const char* optimizer : {"Ftrl", "Adam", "Adagrad"}) {
    SetOptimizer(optimizer, 0.01);
    const auto first = Make();
    for (int64_t batch = 0; batch < 5; ++batch) {
      ASSERT_TRUE(first->Push(Gradient(Batch(0, batch), 0.5F, {3, 4}).request).ok());
    }
    const models::NetworkWeights base = first->Export();
    const auto second = ParameterShard::Make(plan_.model(), *network_, {}, &base).value();
    ASSERT_TRUE(second->Push(Gradient(Batch(0, 0), 0, {3, 4}).request).ok());
    const models::NetworkWeights after = second->Export();
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
  shard->KeepBest();
  const std::string best = models::SaveWeights(shard->Export());
  ASSERT_TRUE(shard->Push(Gradient(Batch(0, 1), 1, {4}).request).ok());
  EXPECT_EQ(models::SaveWeights(shard->Export()), best);
}

TEST_F(ParameterShardTest, AStepClosesOverAllLanesInAnyOrder) {  // P9
  std::string bits;
  for (const std::vector<uint32_t>& order :
       {std::vector<uint32_t>{0, 1, 2, 3}, {3, 1, 0, 2}, {2, 3, 1, 0}}) {
    const auto shard = Make({}, true);
    for (uint32_t lane : order) {
      EXPECT_EQ(shard->version(), 0);
      const float value = 0.1F * static_cast<float>(lane + 1);
      const Owned push = Gradient(Lane(lane, 4, 0), value, {3, static_cast<int64_t>(lane)});
      ASSERT_TRUE(shard->Push(push.request).ok());
      ASSERT_TRUE(shard->Push(push.request).ok()) << "a repetition is acknowledged";
    }
    EXPECT_EQ(shard->version(), 1);
    const std::string now = models::SaveWeights(shard->Export());
    EXPECT_TRUE(bits.empty() || bits == now);
    bits = now;
  }
}

TEST_F(ParameterShardTest, AStepWaitsForTheOneBefore) {
  const auto shard = Make({}, true);
  ASSERT_TRUE(shard->Push(Gradient(Lane(0, 2, 0), 1, {3}).request).ok());
  std::vector<int64_t> ids{3};
  std::vector<float> row(network_->tables()[0].dimension);
  PullRequest pull;
  pull.batch = Lane(0, 2, 1);
  pull.tables.assign(network_->tables().size(), ids);
  PullTarget target;
  target.tables.assign(network_->tables().size(), row.data());
  EXPECT_EQ(shard->Pull(pull, target, 0.001).status().code(), Code::kDeadlineExceeded);
  ASSERT_TRUE(shard->Push(Gradient(Lane(1, 2, 0), 1, {3}).request).ok());
  EXPECT_TRUE(shard->Pull(pull, target, 0.001).ok());
}

// A server that is one step ahead of another still has the values that a new holder of a lane
// needs.
TEST_F(ParameterShardTest, ValuesFromBeforeTheLastStepAreKept) {
  const auto shard = Make({}, true);
  const std::vector<float> before = Row(*shard, 3, Lane(0, 2, 0), false);
  for (uint32_t lane : {0U, 1U}) {
    ASSERT_TRUE(shard->Push(Gradient(Lane(lane, 2, 0), 1, {3}).request).ok());
  }
  int64_t version = -1;
  EXPECT_EQ(Row(*shard, 3, Lane(1, 2, 0), false, &version), before);
  EXPECT_EQ(version, 0);
  EXPECT_NE(Row(*shard, 3, Lane(1, 2, 1), false, &version), before);
  EXPECT_EQ(version, 1);
}

TEST_F(ParameterShardTest, LanesMayEndAtDifferentSteps) {  // R5
  const auto shard = Make({}, true);
  const auto end = [&](uint32_t lane, int64_t step) {
    PushRequest request;
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
