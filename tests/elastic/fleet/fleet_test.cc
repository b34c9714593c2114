#include "elastic/fleet/fleet.h"

#include <gtest/gtest.h>

namespace sluice::elastic {
namespace {

// K22: exit codes as the kernel, shells and Kubernetes report them.
TEST(ClassifyExit, K22_EveryExitHasItsClass) {
  EXPECT_EQ(ClassifyExit(0, false), ExitClass::kOk);
  EXPECT_EQ(ClassifyExit(137, false), ExitClass::kPreempted);
  EXPECT_EQ(ClassifyExit(143, false), ExitClass::kPreempted);
  EXPECT_EQ(ClassifyExit(130, false), ExitClass::kPreempted);
  EXPECT_EQ(ClassifyExit(126, false), ExitClass::kConfiguration);
  EXPECT_EQ(ClassifyExit(127, false), ExitClass::kConfiguration);
  EXPECT_EQ(ClassifyExit(135, false), ExitClass::kHardware);
  EXPECT_EQ(ClassifyExit(139, false), ExitClass::kApplication);
  EXPECT_EQ(ClassifyExit(1, false), ExitClass::kApplication);
  // A kernel or a kubelet kills when memory runs out, and reports that in addition to the number.
  EXPECT_EQ(ClassifyExit(137, true), ExitClass::kOutOfMemory);
}

}  // namespace
}  // namespace sluice::elastic
