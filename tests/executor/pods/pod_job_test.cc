#include "executor/pods/pod_job.h"

#include <gtest/gtest.h>

namespace sluice::executor {
namespace {

TEST(PodJobTest, APodsNameTellsItsRun) {
  const std::string first = PodJobName(7, "abcdef");
  const std::string second = RunName(first, 2);
  EXPECT_TRUE(IsOfRun(first + "-ps-0", first));
  EXPECT_TRUE(IsOfRun(first + "-trial0-worker-1", first));
  EXPECT_TRUE(IsOfRun(second + "-ps-0", second));
  EXPECT_FALSE(IsOfRun(second + "-ps-0", first));
  EXPECT_FALSE(IsOfRun(first + "-ps-0", second));
  EXPECT_FALSE(IsOfRun(RunName(first, 21) + "-ps-0", second));
}

}  // namespace
}  // namespace sluice::executor
