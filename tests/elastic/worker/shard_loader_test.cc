#include "elastic/worker/shard_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catalog/dataset.pb.h"
#include "models/model.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

// Shards beyond what memory may keep.
class ShardLoaderTest : public ::testing::Test {
 protected:
  ShardLoaderTest() {
    network_ = models::Network::Make(plan_.model()).value();
    options_.keep_rows = true;
    options_.checksum = true;
    options_.most_kept = 0;
    options_.spill.emplace();
    options_.spill->judges = false;
    options_.spill->file.share_left = 0;
    options_.spill->on_end = [this](const std::string& why) { ends_.push_back(why); };
  }
  std::unique_ptr<ShardLoader> Make() {
    return ShardLoader::Make(*source_, spec_, network_->transform(),
                             SplitRule::Make(plan_.split()).value(), options_)
        .value();
  }
  static std::shared_ptr<const ShardRows> Load(ShardLoader& loader, ShardId shard) {
    EXPECT_TRUE(loader.Start(shard).ok());
    EXPECT_FALSE(loader.kept());
    for (Result<bool> complete = false; complete.ok();) {
      complete = loader.Pump(1024);
      if (complete.ok() && *complete) {
        return loader.Finish();
      }
    }
    return nullptr;
  }
  static void ExpectSame(const ShardRows& one, const ShardRows& other) {
    for (const auto& [a, b] :
         {std::pair(&one.train, &other.train), std::pair(&one.validation, &other.validation)}) {
      EXPECT_EQ(a->rows, b->rows);
      EXPECT_EQ(a->dense, b->dense);
      EXPECT_EQ(a->labels, b->labels);
      ASSERT_EQ(a->slots.size(), b->slots.size());
      for (size_t slot = 0; slot < a->slots.size(); ++slot) {
        EXPECT_EQ(a->slots[slot].ids, b->slots[slot].ids);
      }
    }
    EXPECT_EQ(one.checksum, other.checksum);
    EXPECT_EQ(one.rows_read, other.rows_read);
  }

  const plan::TrainPlan plan_ = SmallPlan(3, 64);
  const std::unique_ptr<testing::MemorySource> source_ = SmallSource(20'000);
  const catalog::DatasetSpec spec_ = source_->Spec(5'000);
  std::unique_ptr<models::Network> network_;
  ShardLoader::Options options_;
  std::vector<std::string> ends_;
};

TEST_F(ShardLoaderTest, LaterEpochsReadTheDiskAndFindTheSameRows) {
  const auto loader = Make();
  std::vector<std::shared_ptr<const ShardRows>> first;
  for (int shard = 0; shard < spec_.shards_size(); ++shard) {
    first.push_back(Load(*loader, ShardId(shard)));
  }
  EXPECT_EQ(source_->rows_read(), 20'000);
  for (int epoch = 1; epoch < 3; ++epoch) {
    for (int shard = spec_.shards_size() - 1; shard >= 0; --shard) {
      const auto again = Load(*loader, ShardId(shard));
      ASSERT_NE(again, nullptr);
      ExpectSame(*again, *first[static_cast<size_t>(shard)]);
      const auto validation = loader->Validation(ShardId(shard)).value();
      EXPECT_EQ(validation->validation.dense, again->validation.dense);
      EXPECT_EQ(validation->checksum, again->checksum);
      EXPECT_EQ(loader->Checksum(ShardId(shard)).value(), again->checksum);
      EXPECT_NE(again->checksum, 0U);
    }
  }
  EXPECT_EQ(source_->rows_read(), 20'000);
  EXPECT_EQ(loader->rows_read(), 20'000);
  EXPECT_TRUE(ends_.empty());
}

TEST_F(ShardLoaderTest, WhatTheDiskHasNoRoomForComesFromTheDatabaseAgain) {
  options_.spill->file.most_bytes = 170'000;  // two shards of four
  const auto loader = Make();
  std::vector<std::shared_ptr<const ShardRows>> first;
  for (int shard = 0; shard < spec_.shards_size(); ++shard) {
    first.push_back(Load(*loader, ShardId(shard)));
  }
  for (int shard = 0; shard < spec_.shards_size(); ++shard) {
    ExpectSame(*Load(*loader, ShardId(shard)), *first[static_cast<size_t>(shard)]);
  }
  EXPECT_EQ(source_->rows_read(), 30'000);
  EXPECT_EQ(ends_.size(), 1U);
}

TEST_F(ShardLoaderTest, NothingIsSpilledThatFitsInMemoryOrIsReadOnce) {
  for (const bool once : {true, false}) {
    options_.keep_rows = !once;
    options_.most_kept = int64_t{1} << 30;
    options_.spill->file.folder = "/proc/sluice";  // would be told
    const auto loader = Make();
    Load(*loader, ShardId(0));
    EXPECT_TRUE(loader->Start(ShardId(0)).ok());
    EXPECT_EQ(loader->kept(), !once);
  }
  EXPECT_TRUE(ends_.empty());
}

TEST_F(ShardLoaderTest, AbandonedShardsAreNotKept) {
  const auto loader = Make();
  ASSERT_TRUE(loader->Start(ShardId(1)).ok());
  ASSERT_FALSE(loader->Pump(1024).value());
  loader->Abandon();
  const auto whole = Load(*loader, ShardId(1));
  EXPECT_EQ(whole->rows_read, 5'000);
  // One that the disk has is not read from the database either when it was abandoned before.
  ASSERT_TRUE(loader->Start(ShardId(1)).ok());
  loader->Abandon();
  const int64_t before = source_->rows_read();
  ExpectSame(*Load(*loader, ShardId(1)), *whole);
  EXPECT_EQ(source_->rows_read(), before);
}

}  // namespace
}  // namespace sluice::elastic
