#include "elastic/master/checkpoint_schedule.h"

#include <gtest/gtest.h>

#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

TEST(CheckpointSchedule, BeginsOneAfterSoManySteps) {
  CheckpointSchedule schedule(10);
  EXPECT_FALSE(schedule.Begin(9, At(1)));
  EXPECT_TRUE(schedule.Begin(12, At(1)));
  schedule.Over(At(1));
  EXPECT_FALSE(schedule.Begin(21, At(2))) << "counted from the last one's beginning";
  EXPECT_TRUE(schedule.Begin(22, At(2)));
}

TEST(CheckpointSchedule, NoneAreWanted) {
  CheckpointSchedule schedule(0);
  EXPECT_FALSE(schedule.Begin(1'000'000, At(1)));
}

TEST(CheckpointSchedule, OneAtATimeAndThenAPauseAsLongAsItTook) {
  CheckpointSchedule schedule(1);
  ASSERT_TRUE(schedule.Begin(1, At(10)));
  EXPECT_FALSE(schedule.Begin(100, At(20))) << "one is under way";
  schedule.Over(At(25));
  schedule.Over(At(30));  // reported twice: it was over already
  EXPECT_FALSE(schedule.Begin(100, At(39)));
  EXPECT_TRUE(schedule.Begin(100, At(40)));
}

TEST(CheckpointSchedule, StepsOfTheCheckpointThatTheJobGoesOnFromAreOnTheDisk) {
  CheckpointSchedule schedule(10);
  schedule.StartFrom(100);
  EXPECT_FALSE(schedule.Begin(109, At(1)));
  EXPECT_TRUE(schedule.Begin(110, At(1)));
}

TEST(CheckpointSchedule, OneThatIsAskedForWaitsForNoSteps) {
  EXPECT_FALSE(CheckpointSchedule(0).BeginNow(100, At(1)));
  CheckpointSchedule schedule(10);
  ASSERT_TRUE(schedule.Begin(10, At(1)));
  EXPECT_FALSE(schedule.BeginNow(11, At(2))) << "one is under way";
  schedule.Over(At(5));
  EXPECT_TRUE(schedule.BeginNow(11, At(5)));
  EXPECT_FALSE(schedule.Begin(100, At(90))) << "one is under way";
}

}  // namespace
}  // namespace sluice::elastic
