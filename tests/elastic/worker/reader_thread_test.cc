#include "elastic/worker/reader_thread.h"

#include <gtest/gtest.h>

#include "catalog/dataset.pb.h"
#include "models/model.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

class ReaderThreadTest : public ::testing::Test {
 protected:
  ReaderThreadTest() {
    network_ = models::Network::Make(plan_.model()).value();
    loader_ = ShardLoader::Make(*source_, spec_, network_->transform(),
                                SplitRule::Make(plan_.split()).value(), {})
                  .value();
  }
  Result<bool> WaitForEnd(ReaderThread& reader) {
    for (;;) {
      Result<bool> complete = reader.Wait();
      if (!complete.ok() || *complete) {
        return complete;
      }
    }
  }

  const plan::TrainPlan plan_ = SmallPlan(1, 64);
  const std::unique_ptr<testing::MemorySource> source_ = SmallSource(20'000);
  const catalog::DatasetSpec spec_ = source_->Spec(10'000);
  std::unique_ptr<models::Network> network_;
  std::unique_ptr<ShardLoader> loader_;
};

TEST_F(ReaderThreadTest, LoadsShardAfterShard) {
  ReaderThread reader(*loader_, nullptr);
  for (int shard = 0; shard < spec_.shards_size(); ++shard) {
    ASSERT_TRUE(loader_->Start(ShardId(shard)).ok());
    reader.Begin();
    EXPECT_TRUE(reader.reading());
    const Result<bool> complete = WaitForEnd(reader);
    ASSERT_TRUE(complete.ok()) << complete.status().ToString();
    EXPECT_FALSE(reader.reading());
    EXPECT_EQ(loader_->Finish()->rows_read, 10'000);
  }
  EXPECT_EQ(loader_->rows_read(), 20'000);
}

TEST_F(ReaderThreadTest, GivesTheLoaderBackInTheMiddleOfAShard) {
  ReaderThread reader(*loader_, nullptr);
  for (int time = 0; time < 100; ++time) {
    ASSERT_TRUE(loader_->Start(ShardId(0)).ok());
    reader.Begin();
    reader.Stop();
    EXPECT_FALSE(reader.reading());
    loader_->Abandon();
  }
  ASSERT_TRUE(loader_->Start(ShardId(1)).ok());
  reader.Begin();
  ASSERT_TRUE(WaitForEnd(reader).value());
  EXPECT_EQ(loader_->Finish()->rows_read, 10'000);
}

TEST_F(ReaderThreadTest, MayEndWhileItReads) {
  ASSERT_TRUE(loader_->Start(ShardId(0)).ok());
  {
    ReaderThread reader(*loader_, nullptr);
    reader.Begin();
  }
  loader_->Abandon();
  EXPECT_FALSE(loader_->loading());
}

TEST_F(ReaderThreadTest, ReportsAnErrorOnceAndGoesOn) {
  source_->FailReads(0, 1, InvalidArgument("a cell cannot be read"));
  ReaderThread reader(*loader_, nullptr);
  ASSERT_TRUE(loader_->Start(ShardId(0)).ok());
  reader.Begin();
  EXPECT_EQ(WaitForEnd(reader).status().message(), "a cell cannot be read");
  loader_->Abandon();
  ASSERT_TRUE(loader_->Start(ShardId(1)).ok());
  reader.Begin();
  EXPECT_TRUE(WaitForEnd(reader).value());
}

TEST_F(ReaderThreadTest, ItsTimeIsItsOwn) {
  ProfileSum profile;
  {
    ReaderThread reader(*loader_, &profile);
    ASSERT_TRUE(loader_->Start(ShardId(0)).ok());
    reader.Begin();
    ASSERT_TRUE(WaitForEnd(reader).value());
  }
  EXPECT_GT(profile.Get().Seconds(Phase::kDecoding), 0);
  EXPECT_GT(profile.Get().Seconds(Phase::kTransforming), 0);
  EXPECT_EQ(profile.Get().Seconds(Phase::kRows), 0);
}

}  // namespace
}  // namespace sluice::elastic
