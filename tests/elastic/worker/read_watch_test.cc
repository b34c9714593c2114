#include "elastic/worker/read_watch.h"

#include <gtest/gtest.h>

#include <optional>

#include "catalog/dataset.pb.h"
#include "elastic/job/training_job.h"
#include "elastic/worker/shard_rows.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

TEST(ReadWatch, WhyRowsAreReadAgainIsTakenOnce) {
  ReadWatch watch;
  EXPECT_EQ(watch.TakeRowsReadAgain(), "");
  watch.ReadRowsAgain("the disk is full");
  EXPECT_EQ(watch.TakeRowsReadAgain(), "the disk is full");
  EXPECT_EQ(watch.TakeRowsReadAgain(), "");
}

TEST(ReadWatch, CountsTheBeatsOfOneReadOnly) {
  ReadWatch watch;
  EXPECT_EQ(watch.Beat(), 0);
  EXPECT_EQ(watch.Beat(), 0);
  std::optional<ReadWatch::Read> read(std::in_place, &watch);
  for (int beat = 0; beat < 5; ++beat) {
    EXPECT_EQ(watch.Beat(), beat);
  }
  read.reset();
  read.emplace(&watch);  // another read, which the next heartbeat sees first
  EXPECT_EQ(watch.Beat(), 0);
  EXPECT_EQ(watch.Beat(), 1);
  read.reset();
  EXPECT_EQ(watch.Beat(), 0);
}

// A database that does not answer is noticed while it is asked, and not after.
TEST(ReadWatch, LoadersTellOfTheirReads) {
  const auto source = SmallSource(3'000);
  const catalog::DatasetSpec spec = source->Spec(3'000);
  const plan::TrainPlan plan = SmallPlan(1, 32);
  const auto network = models::Network::Make(plan.model()).value();
  ReadWatch watch;
  int longest = 0;
  source->OnRead([&] {
    for (int beat = 0; beat < 4; ++beat) {
      longest = std::max(longest, watch.Beat());
    }
  });
  ShardLoader::Options options;
  options.watch = &watch;
  const auto loader = ShardLoader::Make(*source, spec, network->transform(),
                                        SplitRule::Make(plan.split()).value(), options)
                          .value();
  ASSERT_TRUE(loader->Start(ShardId(0)).ok());
  while (!loader->Pump(1'000).value()) {
    EXPECT_EQ(watch.Beat(), 0);
    EXPECT_EQ(watch.Beat(), 0);
  }
  EXPECT_EQ(longest, 3);
}

}  // namespace
}  // namespace sluice::elastic
