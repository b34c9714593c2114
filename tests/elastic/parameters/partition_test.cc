#include "elastic/parameters/partition.h"

#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <random>
#include <set>

#include "elastic/parameters/partition.pb.h"
#include "elastic/storage/crc32c.h"
#include "models/model.pb.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

TEST(PartitionLayout, P18_AHugeTensorIsSpreadEvenly) {
  const size_t gigabyte = (size_t{1} << 30) / sizeof(float);
  const PartitionLayout layout(std::vector<size_t>{gigabyte, 100, 7'000'001}, 64);
  for (uint32_t servers : {2U, 3U, 4U, 5U, 7U}) {
    std::vector<double> held(servers, 0);
    double whole = 0;
    for (uint32_t p = 0; p < layout.partitions(); ++p) {
      held[p % servers] += static_cast<double>(layout.dense_size(p));
      whole += static_cast<double>(layout.dense_size(p));
      for (const PartitionLayout::Chunk& chunk : layout.chunks(p)) {
        EXPECT_LE(chunk.size() * sizeof(float), size_t{1} << 20);
      }
    }
    EXPECT_EQ(static_cast<size_t>(whole), gigabyte + 100 + 7'000'001);
    for (double one : held) {
      EXPECT_NEAR(one / (whole / servers), 1, 0.1) << servers << " servers";
    }
  }
}

// A hot id appears once per batch however often it occurs, so a server's load is counted in
// distinct rows: batches of 8,192 draws from 10^6 ids by Zipf 1.2, four servers.
TEST(PartitionLayout, P21_HotKeysDoNotOverloadAServer) {
  const PartitionLayout layout(std::vector<size_t>{}, 64);
  std::mt19937_64 random(5);
  std::vector<double> cumulative;
  double sum = 0;
  for (int rank = 1; rank <= 1'000'000; ++rank) {
    sum += std::pow(rank, -1.2);
    cumulative.push_back(sum);
  }
  std::vector<double> load(4, 0);
  double worst_batch = 0;
  for (int batch = 0; batch < 50; ++batch) {
    std::set<int64_t> ids;
    for (int i = 0; i < 8'192; ++i) {
      const double at = std::uniform_real_distribution<>(0, sum)(random);
      ids.insert(std::lower_bound(cumulative.begin(), cumulative.end(), at) - cumulative.begin());
    }
    std::vector<double> one(4, 0);
    for (int64_t id : ids) {
      one[layout.PartitionOf(0, id) % 4] += 1;
    }
    for (size_t s = 0; s < 4; ++s) {
      load[s] += one[s];
    }
    worst_batch = std::max(worst_batch, *std::max_element(one.begin(), one.end()) /
                                            (static_cast<double>(ids.size()) / 4));
  }
  const double mean = (load[0] + load[1] + load[2] + load[3]) / 4;
  RecordProperty("imbalance", std::to_string(*std::max_element(load.begin(), load.end()) / mean));
  EXPECT_LE(*std::max_element(load.begin(), load.end()) / mean, 1.3);
  EXPECT_LE(worst_batch, 1.3);
}

TEST(Crc32c, KnownValues) {  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(Crc32c("56789", Crc32c("1234")), 0xE3069283U);
}

// Partitions of SmallPlan's network, with a table of any ids.
class PartitionTest : public ::testing::Test {
 protected:
  explicit PartitionTest(bool synchronous = false) : plan_(SmallPlan(1, 64)) {
    plan_.mutable_model()->mutable_deep_optimizer()->set_name("Adam");
    network_ = models::Network::Make(plan_.model()).value();
    rules_ = std::make_unique<ParameterRules>(
        ParameterRules::Make(plan_.model(), *network_, 1, synchronous).value());
    rules_->tables[0].rows = 0;
  }
  Partition Fresh() const {
    Partition partition(*rules_, 0);
    partition.Initialize(nullptr);
    return partition;
  }
  // The spans refer to its own vectors: it may be moved, not copied.
  struct Step {
    std::vector<std::vector<float>> owned;
    std::vector<int64_t> ids;
    std::vector<float> rows;
    std::vector<std::span<const float>> dense;
    std::vector<RowSpan> tables;
  };
  Step Gradient(float value, const std::vector<int64_t>& ids) const {
    Step step;
    for (const PartitionLayout::Chunk& chunk : rules_->layout.chunks(0)) {
      step.owned.emplace_back(chunk.size(), value);
    }
    for (const std::vector<float>& chunk : step.owned) {
      step.dense.emplace_back(chunk);
    }
    step.ids = ids;
    step.rows.assign(ids.size() * rules_->dimensions[0], value);
    step.tables.assign(rules_->tables.size(), {});
    step.tables[0] = {step.ids, step.rows};
    return step;
  }
  void Apply(Partition* partition, int64_t batch, float value,
             const std::vector<int64_t>& ids) const {
    BatchIdentity identity;
    identity.batch = BatchIndex(batch);
    const Result<bool> is_new = partition->IsNew(identity);
    ASSERT_TRUE(is_new.ok() && *is_new);
    const Step step = Gradient(value, ids);
    partition->Apply(identity, batch, step.dense, step.tables);
  }

  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
  std::unique_ptr<ParameterRules> rules_;
};

const std::vector<int64_t> kIds{-7, 0, 3, std::numeric_limits<int64_t>::min(),
                                std::numeric_limits<int64_t>::max()};

TEST_F(PartitionTest, P11_ALoadedPartitionGoesOnWithTheSameBits) {
  Partition one = Fresh();
  for (int64_t batch = 0; batch < 5; ++batch) {
    Apply(&one, batch, 0.3F, kIds);
  }
  ASSERT_TRUE(one.KeepBest({1, {}}).ok());
  Apply(&one, 5, -0.1F, {3});
  Partition other = Fresh();
  ASSERT_TRUE(other.Load(one.Capture().Encode().value()).ok());
  EXPECT_EQ(other.Capture().Encode().value(), one.Capture().Encode().value());
  EXPECT_EQ(other.version(), 6);
  EXPECT_EQ(other.rows(), 5);
  EXPECT_EQ(models::SaveWeights(other.Export()), models::SaveWeights(one.Export()));
  Apply(&one, 6, 0.2F, kIds);
  Apply(&other, 6, 0.2F, kIds);
  EXPECT_EQ(other.Capture().Encode().value(), one.Capture().Encode().value());
  BatchIdentity again;
  again.batch = BatchIndex(4);
  EXPECT_FALSE(other.IsNew(again).value()) << "the window came along";
}

// An order that is said twice, or comes late, keeps nothing that came after what was judged.
TEST_F(PartitionTest, E6_WhatWasJudgedIsKeptAndNoLaterMoment) {
  Partition one = Fresh();
  Apply(&one, 0, 0.3F, kIds);
  ASSERT_TRUE(one.KeepBest({1, {1}}).ok());
  const std::string best = DigestOf(one.Export());
  Apply(&one, 1, 0.3F, kIds);
  EXPECT_TRUE(one.KeepBest({1, {1}}).ok());
  EXPECT_EQ(DigestOf(one.Export()), best);
  const Status gone = one.KeepBest({2, {1}});
  EXPECT_EQ(gone.code(), Code::kFailedPrecondition) << gone.ToString();
  EXPECT_EQ(DigestOf(one.Export()), best);
  ASSERT_TRUE(one.KeepBest({2, {2}}).ok());
  EXPECT_NE(DigestOf(one.Export()), best);
  EXPECT_EQ(one.KeepBest({1, {1}}).code(), Code::kAborted);
  // A copy has it, too.
  Partition copy = Fresh();
  ASSERT_TRUE(copy.Load(one.Capture().Encode().value()).ok());
  Apply(&copy, 2, 0.3F, kIds);
  EXPECT_TRUE(copy.KeepBest({2, {2}}).ok());
  EXPECT_EQ(DigestOf(copy.Export()), DigestOf(one.Export()));
}

TEST_F(PartitionTest, DamageIsFoundAndChangesNothing) {
  Partition one = Fresh();
  Apply(&one, 0, 0.3F, kIds);
  const std::string good = one.Capture().Encode().value();
  Partition other = Fresh();
  const std::string before = other.Capture().Encode().value();
  for (size_t at = 0; at < good.size(); at += 97) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_FALSE(other.Load(bad).ok()) << at;
    EXPECT_FALSE(other.Load(std::string_view(good).substr(0, at)).ok()) << at;
  }
  EXPECT_EQ(other.Capture().Encode().value(), before);
  ParameterRules two = ParameterRules::Make(plan_.model(), *network_, 2, false).value();
  EXPECT_FALSE(Partition(two, 0).Load(good).ok()) << "another layout";
}

// Any number of parts of any size make the same partition.
TEST_F(PartitionTest, PartsOfAnySizeAreTheSamePartition) {
  Partition one = Fresh();
  Apply(&one, 0, 0.3F, kIds);
  ASSERT_TRUE(one.KeepBest({1, {}}).ok());
  for (size_t part_bytes : {size_t{1}, size_t{100}, size_t{4096}, kMaxPartBytes}) {
    std::deque<std::string> parts;
    const Status encoded = one.Capture().Encode(
        [&parts, part_bytes](std::string part) {
          EXPECT_LE(part.size(), part_bytes + 16) << "with its mark and its header";
          parts.push_back(std::move(part));
          return Status();
        },
        part_bytes);
    ASSERT_TRUE(encoded.ok()) << encoded.ToString();
    EXPECT_EQ(parts.size() > 1, part_bytes <= 100);
    Partition other = Fresh();
    PiecesSource source(std::move(parts));
    const Status loaded = other.Load(source);
    ASSERT_TRUE(loaded.ok()) << loaded.ToString();
    EXPECT_EQ(other.Capture().Encode().value(), one.Capture().Encode().value());
  }
}

TEST_F(PartitionTest, ASinkThatFailsIsAnError) {
  const Partition one = Fresh();
  const Status encoded = one.Capture().Encode(
      [](const std::string&) { return ResourceExhausted("the disk is full"); });
  EXPECT_EQ(encoded.message(), "the disk is full");
}

// Before there were parts, a partition was one message with a checksum.
TEST_F(PartitionTest, AMessageOfEarlierCheckpointsIsRead) {
  PartitionStateProto state;
  state.set_partitions(1);
  state.set_version(3);
  Partition one = Fresh();
  for (const PartitionLayout::Chunk& chunk : one.chunks()) {
    const size_t slots = rules_->OptimizerOf(rules_->tensors[chunk.tensor]).slot_count();
    const std::vector<float> numbers(chunk.size() * (1 + slots), 0.25F);
    state.add_dense(numbers.data(), numbers.size() * sizeof(float));
  }
  for (size_t t = 0; t < rules_->tables.size(); ++t) {
    state.add_tables();
  }
  state.mutable_open()->set_over(true);
  std::string bytes = state.SerializeAsString();
  const uint32_t crc = Crc32c(bytes);
  bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  const Status loaded = one.Load(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.ToString();
  EXPECT_EQ(one.version(), 3);
  EXPECT_EQ(one.values(0)[0], 0.25F);
  bytes[7] = static_cast<char>(bytes[7] ^ 1);
  EXPECT_FALSE(one.Load(bytes).ok());
}

TEST_F(PartitionTest, BatchesThatCannotBeAreRefused) {
  Partition one = Fresh();
  BatchIdentity batch;
  batch.shard = ShardId(-1);
  EXPECT_EQ(one.IsNew(batch).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(one.AppliedBatches(Epoch(0), ShardId(-1)), BatchIndex(0));
  batch.shard = ShardId(std::numeric_limits<int64_t>::max());  // a bit for each before it
  batch.last = true;
  EXPECT_EQ(one.IsNew(batch).status().code(), Code::kInvalidArgument);
  batch.shard = ShardId(0);
  batch.range = RangeId(5);
  batch.batch = BatchIndex(4);  // before its own range
  EXPECT_EQ(one.IsNew(batch).status().code(), Code::kInvalidArgument);
}

class SynchronousPartitionTest : public PartitionTest {
 protected:
  SynchronousPartitionTest() : PartitionTest(true) {}
  static BatchIdentity Lane(uint32_t lane, int64_t step) {
    BatchIdentity identity;
    identity.batch = BatchIndex(step);
    identity.lane = lane;
    identity.lanes = 4;
    return identity;
  }
};

TEST_F(SynchronousPartitionTest, AnOpenStepMovesToo) {
  const auto push = [&](Partition* partition, uint32_t lane, int64_t step) {
    const Step gradient = Gradient(0.1F * static_cast<float>(lane + 1), {3, lane});
    const Result<bool> closed =
        partition->PushLane(Lane(lane, step), 2, false, gradient.dense, gradient.tables);
    ASSERT_TRUE(closed.ok());
  };
  Partition one = Fresh();
  for (uint32_t lane = 0; lane < 4; ++lane) {
    push(&one, lane, 0);
  }
  push(&one, 2, 1);
  push(&one, 0, 1);
  Partition other = Fresh();
  ASSERT_TRUE(other.Load(one.Capture().Encode().value()).ok());
  EXPECT_EQ(other.StepReady(Lane(1, 0)), Partition::Ready::kBefore);
  for (Partition* partition : {&one, &other}) {
    push(partition, 0, 1);  // a repetition
    push(partition, 3, 1);
    push(partition, 1, 1);
    EXPECT_EQ(partition->version(), 2);
  }
  EXPECT_EQ(other.Capture().Encode().value(), one.Capture().Encode().value());
}

}  // namespace
}  // namespace sluice::elastic
