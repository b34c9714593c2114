#include "base/machine.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace sluice {
namespace {

class MachineTest : public ::testing::Test {
 protected:
  MachineTest()
      : folder_(::testing::TempDir() + "/machine_test_" +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::create_directories(folder_ + "/cpu");
  }
  ~MachineTest() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& file, const std::string& text) const {
    std::ofstream(folder_ + "/" + file) << text << "\n";
  }

  const std::string folder_;
  const unsigned all_ = std::max(1U, std::thread::hardware_concurrency());
};

TEST_F(MachineTest, AQuotaOfTheControlGroupCounts) {
  EXPECT_EQ(MachineProcessors(folder_), all_);
  Write("cpu.max", "max 100000");
  EXPECT_EQ(MachineProcessors(folder_), all_);
  Write("cpu.max", "30000 100000");
  EXPECT_EQ(MachineProcessors(folder_), 1U);
  Write("cpu.max", "100000000 100000");  // more than the machine has
  EXPECT_EQ(MachineProcessors(folder_), all_);
}

TEST_F(MachineTest, AQuotaOfTheFirstVersionCountsToo) {
  Write("cpu/cpu.cfs_period_us", "100000");
  Write("cpu/cpu.cfs_quota_us", "-1");
  EXPECT_EQ(MachineProcessors(folder_), all_);
  Write("cpu/cpu.cfs_quota_us", "50000");
  EXPECT_EQ(MachineProcessors(folder_), 1U);
}

}  // namespace
}  // namespace sluice
