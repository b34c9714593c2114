#include "elastic/worker/replica_state.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

class NoMaster final : public WorldLink {
 public:
  Result<WorldAnswer> Regroup(const WorldArrival&) override { return WorldAnswer(); }
  Result<StepAnswer> ReportStep(WorldId, int64_t, const RoundPosition&) override {
    return StepAnswer();
  }
  Status Written(const std::string&, const Result<CheckpointManifest::File>&) override {
    return Status();
  }
  Status Deliver(const models::NetworkWeights&) override { return Status(); }
};

class ReplicaStateTest : public ::testing::Test {
 protected:
  // One worker's copy of the parameters.
  struct Copy {
    explicit Copy(ReplicaStateTest& test)
        : shard(ParameterShard::Make(test.plan_.model(), *test.network_, {}, nullptr).value()),
          state({test.link_, *shard, "", ""}, *test.network_) {}
    std::unique_ptr<ParameterShard> shard;
    ReplicaState state;
  };
  const plan::TrainPlan plan_ = SmallPlan(1, 10);
  const std::unique_ptr<models::Network> network_ = models::Network::Make(plan_.model()).value();
  NoMaster link_;
};

// Two lanes, of which one has ended, and a step that has changed every parameter.
void Train(ReplicaState& state, const models::Network& network) {
  ASSERT_TRUE(state.Begin().ok());
  TaskReport lane;
  lane.task = TaskId(8);
  lane.next_batch = BatchIndex(3);
  lane.rows = 30;
  lane.loss = 1.5;
  lane.checksum = 99;
  TaskReport ended = lane;
  ended.task = TaskId(9);
  ended.done = true;
  state.position = {Epoch(2), RoundIndex(4), BatchIndex(3), {lane, ended}};
  StepSum sum;
  sum.lanes.resize(2);
  sum.lanes[0].gradient = 1;
  for (const models::DenseTensor& tensor : network.dense()) {
    sum.gradient.dense.resize(sum.gradient.dense.size() + tensor.size(), 0.25F);
  }
  sum.gradient.tables.resize(network.tables().size());
  ASSERT_TRUE(state.Apply(sum, Task()).ok());
  EXPECT_EQ(state.closed(), 1);
}

TEST_F(ReplicaStateTest, AJoiningWorkerHasWhatTheOthersHave) {
  Copy one(*this), other(*this);
  Train(one.state, *network_);
  const auto sent = one.state.Save();
  ASSERT_TRUE(sent.ok());
  const Status loaded = other.state.Load(*sent);
  ASSERT_TRUE(loaded.ok()) << loaded.ToString();
  EXPECT_EQ(other.state.closed(), 1);
  ASSERT_EQ(other.state.position.lanes.size(), 2U);
  EXPECT_EQ(other.state.position.lanes[0].loss, 1.5);
  EXPECT_TRUE(other.state.position.lanes[1].done);
  EXPECT_EQ(other.state.Save().value(), *sent);
}

TEST_F(ReplicaStateTest, WhatAMemberSendsIsNotBelieved) {
  Copy one(*this), other(*this);
  Train(one.state, *network_);
  std::deque<std::string> sent = one.state.Save().value();
  const int64_t lanes = int64_t{1} << 40;
  std::memcpy(sent[0].data() + 5 * sizeof(int64_t), &lanes, sizeof(lanes));
  EXPECT_EQ(other.state.Load(sent).code(), Code::kUnavailable) << "another may send it right";
  sent = one.state.Save().value();
  sent.pop_back();
  EXPECT_EQ(other.state.Load(sent).code(), Code::kUnavailable);
  EXPECT_EQ(other.state.closed(), Rendezvous::kNoState);
  EXPECT_TRUE(other.state.position.lanes.empty());
}

TEST_F(ReplicaStateTest, OnlyTheWeightsOfNowCanBeKept) {
  Copy one(*this);
  Train(one.state, *network_);
  EXPECT_EQ(one.state.Keep(2).code(), Code::kInternal);
  const Status kept = one.state.Keep(1);
  ASSERT_TRUE(kept.ok()) << kept.ToString();
  WorldArrival arrival;
  one.state.Describe(&arrival);
  EXPECT_EQ(arrival.kept, 1);
  EXPECT_EQ(arrival.kept_digest.size(), 64U);
}

TEST_F(ReplicaStateTest, WeightsOfAnEarlierBeginningAreNoUse) {
  Copy one(*this);
  EXPECT_TRUE(one.state.BelongTo(1).ok());
  Train(one.state, *network_);
  EXPECT_TRUE(one.state.BelongTo(1).ok());
  EXPECT_EQ(one.state.BelongTo(2).code(), Code::kAborted);
}

}  // namespace
}  // namespace sluice::elastic
