#include "elastic/master/suspension.h"

#include <gtest/gtest.h>

#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

TEST(Suspension, WaitsForALastCheckpointButNotForEver) {
  Suspension suspension;
  EXPECT_FALSE(suspension.requested());
  EXPECT_FALSE(suspension.Overdue(At(1000)));
  suspension.Request(At(10));
  suspension.Request(At(60));
  EXPECT_TRUE(suspension.requested());
  EXPECT_FALSE(suspension.Overdue(At(10 + Suspension::kLongestSeconds - 1)));
  EXPECT_TRUE(suspension.Overdue(At(10 + Suspension::kLongestSeconds)))
      << "the first request counts";
}

TEST(Suspension, RemembersThatTheLastCheckpointHasBegun) {
  Suspension suspension;
  suspension.Request(At(1));
  EXPECT_FALSE(suspension.last_checkpoint());
  suspension.OnLastCheckpoint();
  EXPECT_TRUE(suspension.last_checkpoint());
}

}  // namespace
}  // namespace sluice::elastic
