#include "executor/processes/process_title.h"

#include <gtest/gtest.h>

namespace sluice::executor {
namespace {

TEST(ProcessTitle, SaysJobRoleAndNumber) {
  EXPECT_EQ(TitleOfJob(7), "sluice: job 7");
  EXPECT_EQ(TitleOfProcess("job7-worker-2"), "sluice: job 7 worker 2");
  EXPECT_EQ(TitleOfProcess("job12-ps-0"), "sluice: job 12 ps 0");
  EXPECT_EQ(TitleOfProcess("probe"), "sluice: probe");
}

}  // namespace
}  // namespace sluice::executor
