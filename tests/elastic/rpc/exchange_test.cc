#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "elastic/parameters/bfloat16.h"
#include "elastic/rpc/exchange_internal.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

TEST(Bfloat16, RoundsToTheNearest) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> from{0,       -0.0F,     1,      1.0F + 0x1p-8F, 1.0F + 0x1.8p-7F,
                                -2.718F, kInfinity, 1e-40F, std::nanf(""),  3e38F};
  std::vector<uint16_t> narrow(from.size());
  std::vector<float> back(from.size());
  NarrowToBfloat16(from, narrow.data());
  WidenBfloat16(narrow.data(), back);
  EXPECT_EQ(back[0], 0);
  EXPECT_TRUE(std::signbit(back[1]));
  EXPECT_EQ(back[2], 1);
  EXPECT_EQ(back[3], 1) << "a tie goes to the even one";
  EXPECT_EQ(back[4], 1.0F + 0x1p-6F) << "a tie goes to the even one";
  EXPECT_EQ(back[6], kInfinity);
  EXPECT_TRUE(std::isnan(back[8]));
  for (const size_t i : {5U, 9U}) {
    EXPECT_NEAR(back[i] / from[i], 1, 0x1p-8);
  }
}

// A worker's packer directly against a server's shard.
class ExchangeTest : public ::testing::Test {
 protected:
  explicit ExchangeTest(bool bf16 = false) : plan_(SmallPlan(1, 64)), bf16_(bf16) {
    network_ = models::Network::Make(plan_.model()).value();
    shard_ = ParameterShard::Make(plan_.model(), *network_, {kPartitions, false, false}, nullptr)
                 .value();
    packer_ = std::make_unique<ExchangePacker>(*network_, kPartitions, bf16);
    part_.partitions.resize(kPartitions);
    std::iota(part_.partitions.begin(), part_.partitions.end(), 0);
    view_.tables.resize(network_->tables().size());
    view_.tables[0].ids = {3, 1, 40, 17};
  }
  // Returns the number of dense numbers received.
  size_t Pull(ExchangePacker& packer) {
    packer.Pack({.pull = &batch_, .wanted = &view_}, parts_);
    part_.reply.Clear();
    Status status =
        AnswerPull(part_.request.pull(), kNoMapVersion, part_.partitions, 0, *shard_, &part_.reply);
    EXPECT_TRUE(status.ok()) << status.ToString();
    status = packer.Take(parts_, &view_);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return part_.reply.dense().size() / (bf16_ ? sizeof(uint16_t) : sizeof(float));
  }
  void Push(float value) {
    models::Gradient gradient;
    for (const models::DenseTensor& tensor : network_->dense()) {
      gradient.dense.emplace_back(tensor.size(), value);
    }
    for (const models::RowSet& rows : view_.tables) {
      gradient.tables.emplace_back(rows.values.size(), value);
    }
    const BatchPush push{batch_, 0, &view_, &gradient};
    packer_->Pack({.pushes = {&push, 1}}, parts_);
    UnpackedPush unpacked;
    ASSERT_TRUE(
        Unpack(part_.request.push(), shard_->rules().layout, part_.partitions, &unpacked).ok());
    const Status status = shard_->Push(unpacked.request);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ++batch_.batch;
  }
  // The dense values of the worker, tensor after tensor.
  std::vector<float> Dense() const {
    std::vector<float> all;
    for (size_t t = 0; t < network_->dense().size(); ++t) {
      all.insert(all.end(), view_.dense[t], view_.dense[t] + network_->dense()[t].size());
    }
    return all;
  }
  std::vector<float> DenseOfServer() const {
    std::vector<float> all;
    const models::NetworkWeights weights = shard_->ExportAll(*network_).value();
    for (const std::vector<float>& tensor : weights.dense) {
      all.insert(all.end(), tensor.begin(), tensor.end());
    }
    return all;
  }

  static constexpr uint32_t kPartitions = 4;
  plan::TrainPlan plan_;
  const bool bf16_;
  std::unique_ptr<models::Network> network_;
  std::unique_ptr<ParameterShard> shard_;
  std::unique_ptr<ExchangePacker> packer_;
  ExchangePart part_;
  ExchangePart* parts_[1] = {&part_};
  models::ParameterView view_;
  BatchIdentity batch_;
};

TEST_F(ExchangeTest, P19_WhatHasNotChangedCostsNoBytes) {
  const size_t all = DenseOfServer().size();
  EXPECT_EQ(Pull(*packer_), all);
  const std::vector<float> rows = view_.tables[0].values;
  EXPECT_EQ(Pull(*packer_), 0U);
  EXPECT_EQ(Dense(), DenseOfServer());
  EXPECT_EQ(view_.tables[0].values, rows);
  Push(0.5F);
  EXPECT_EQ(Pull(*packer_), all);
  EXPECT_EQ(Dense(), DenseOfServer());
  EXPECT_NE(view_.tables[0].values, rows);
  EXPECT_EQ(Pull(*packer_), 0U);
  packer_->Forget();
  EXPECT_EQ(Pull(*packer_), all) << "after the partitions have moved";
}

TEST_F(ExchangeTest, LanesOfAStepTravelTogether) {
  Pull(*packer_);
  models::Gradient gradient;
  for (const models::DenseTensor& tensor : network_->dense()) {
    gradient.dense.emplace_back(tensor.size(), 1.0F);
  }
  for (const models::RowSet& rows : view_.tables) {
    gradient.tables.emplace_back(rows.values.size(), 1.0F);
  }
  std::vector<BatchPush> pushes(3, {batch_, 2, &view_, &gradient});
  for (uint32_t lane = 0; lane < pushes.size(); ++lane) {
    pushes[lane].batch.lane = lane;
  }
  pushes[2].gradient = nullptr;  // the end of a lane
  packer_->Pack({.pushes = pushes}, parts_);
  const ExchangeRequest& request = part_.request;
  ASSERT_EQ(request.further_pushes_size(), 2);
  EXPECT_EQ(request.push().batch().lane(), 0U);
  EXPECT_EQ(request.further_pushes(0).batch().lane(), 1U);
  EXPECT_EQ(request.further_pushes(0).dense(), request.push().dense());
  EXPECT_EQ(request.further_pushes(0).tables(0).ids(), request.push().tables(0).ids());
  EXPECT_FALSE(request.push().tables(0).ids().empty());
  EXPECT_TRUE(request.further_pushes(1).end());
  EXPECT_TRUE(request.further_pushes(1).dense().empty());
}

// Partitions that others have pushed to are sent, and stored in the right place.
TEST_F(ExchangeTest, P19_ChangedPartitionsAloneAreSent) {
  Pull(*packer_);
  const PartitionLayout& layout = shard_->rules().layout;
  const uint32_t changed = 1;
  std::vector<std::vector<float>> chunks;
  for (const PartitionLayout::Chunk& chunk : layout.chunks(changed)) {
    chunks.emplace_back(chunk.size(), 0.3F);
  }
  const int64_t version = 0;
  PushRequest push;
  push.partitions = std::span(&changed, 1);
  push.versions = std::span(&version, 1);
  push.dense.assign(chunks.begin(), chunks.end());
  push.tables.resize(network_->tables().size());
  ASSERT_TRUE(shard_->Push(push).ok());
  EXPECT_EQ(Pull(*packer_), layout.dense_size(changed));
  EXPECT_EQ(Dense(), DenseOfServer());
}

// A worker's versions of partitions that this server does not serve are not an error of the job.
TEST_F(ExchangeTest, VersionsOfOtherPartitionsAreAnotherMap) {
  packer_->Pack({.pull = &batch_, .wanted = &view_}, parts_);
  EXPECT_EQ(AnswerPull(part_.request.pull(), kNoMapVersion, {}, 0, *shard_, &part_.reply).code(),
            Code::kNotFound);
  Pull(*packer_);
  models::Gradient gradient;
  for (const models::DenseTensor& tensor : network_->dense()) {
    gradient.dense.emplace_back(tensor.size(), 1.0F);
  }
  for (const models::RowSet& rows : view_.tables) {
    gradient.tables.emplace_back(rows.values.size(), 1.0F);
  }
  const BatchPush lane{batch_, 0, &view_, &gradient};
  packer_->Pack({.pushes = {&lane, 1}}, parts_);
  const PartitionLayout& layout = shard_->rules().layout;
  UnpackedPush push;
  EXPECT_EQ(Unpack(part_.request.push(), layout, {}, &push).code(), Code::kNotFound);
  for (const std::vector<uint32_t>& wrong :
       {std::vector<uint32_t>(kPartitions, 0), std::vector<uint32_t>(kPartitions, kPartitions)}) {
    UnpackedPush other;
    EXPECT_EQ(Unpack(part_.request.push(), layout, wrong, &other).code(), Code::kInvalidArgument);
  }
}

TEST_F(ExchangeTest, APushOfNonsenseChangesNothing) {
  Pull(*packer_);
  const std::string before = shard_->Save(0).value();
  PushProto push;
  push.set_end(true);  // of a lane, in a job without lanes
  UnpackedPush end;
  ASSERT_TRUE(Unpack(push, shard_->rules().layout, part_.partitions, &end).ok());
  EXPECT_EQ(shard_->Push(end.request).code(), Code::kInvalidArgument);
  EXPECT_EQ(shard_->Save(0).value(), before);
}

TEST_F(ExchangeTest, AnAnswerThatCannotTravelIsRefusedBeforeThereIsRoom) {
  PullProto pull;
  for (size_t t = 0; t < network_->tables().size(); ++t) {
    pull.add_tables();
  }
  pull.mutable_tables(0)->assign(size_t{300} << 20, '\0');  // ids; four numbers for each
  ExchangeReply reply;
  EXPECT_EQ(AnswerPull(pull, kNoMapVersion, part_.partitions, 0, *shard_, &reply).code(),
            Code::kResourceExhausted);
}

TEST_F(ExchangeTest, AnswersThatDoNotFitAreErrors) {
  Pull(*packer_);
  Push(0.1F);
  packer_->Pack({.pull = &batch_, .wanted = &view_}, parts_);
  part_.reply.Clear();
  ASSERT_TRUE(
      AnswerPull(part_.request.pull(), kNoMapVersion, part_.partitions, 0, *shard_, &part_.reply)
          .ok());
  const ExchangeReply good = part_.reply;
  part_.reply.mutable_dense()->pop_back();
  EXPECT_EQ(packer_->Take(parts_, &view_).code(), Code::kInternal);
  part_.reply = good;
  part_.reply.mutable_tables(0)->pop_back();
  EXPECT_EQ(packer_->Take(parts_, &view_).code(), Code::kInternal);
  part_.reply = good;
  part_.reply.mutable_versions()->clear();
  EXPECT_EQ(packer_->Take(parts_, &view_).code(), Code::kInternal);
  part_.request.mutable_pull()->mutable_known()->resize(8);
  EXPECT_EQ(
      AnswerPull(part_.request.pull(), kNoMapVersion, part_.partitions, 0, *shard_, &part_.reply)
          .code(),
      Code::kNotFound);
}

class Bfloat16ExchangeTest : public ExchangeTest {
 protected:
  Bfloat16ExchangeTest() : ExchangeTest(true) {}
};

TEST_F(Bfloat16ExchangeTest, P19_MessagesAreHalfAsLargeAndNearlyAsExact) {
  EXPECT_EQ(Pull(*packer_), DenseOfServer().size());
  const size_t narrow = part_.reply.dense().size() + part_.reply.tables(0).size();
  const std::vector<float> expected = DenseOfServer(), got = Dense();
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], std::fabs(expected[i]) * 0x1p-8F + 1e-30F);
  }
  Push(0.7F);
  const size_t pushed = part_.request.push().dense().size();
  EXPECT_EQ(pushed, DenseOfServer().size() * sizeof(uint16_t));
  EXPECT_EQ(Pull(*packer_), DenseOfServer().size());
  ExchangePacker whole(*network_, kPartitions, false);
  whole.Pack({.pull = &batch_, .wanted = &view_}, parts_);
  part_.reply.Clear();
  ASSERT_TRUE(
      AnswerPull(part_.request.pull(), kNoMapVersion, part_.partitions, 0, *shard_, &part_.reply)
          .ok());
  EXPECT_EQ(part_.reply.dense().size() + part_.reply.tables(0).size(), 2 * narrow);
}

}  // namespace
}  // namespace sluice::elastic
