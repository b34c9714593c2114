#include "base/memory_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

constexpr int kProcess = 7;

class MemoryGroupTest : public ::testing::Test {
 protected:
  MemoryGroupTest()
      : folder_(::testing::TempDir() + "/memory_group_test_" + std::to_string(getpid())) {}
  ~MemoryGroupTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = folder_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::optional<MemoryGroup> Group() const {
    return MemoryGroup::Of(kProcess, folder_ + "/proc", folder_ + "/groups");
  }

  const std::string folder_;
};

TEST_F(MemoryGroupTest, OfTheFirstVersion) {
  Write("proc/7/cgroup", "5:devices:/\n4:cpu,memory:/jobs/one\n0::/elsewhere");
  Write("groups/memory/memory.oom_control", "oom_kill 40");
  Write("groups/memory/memory.limit_in_bytes", "9223372036854771712");
  Write("groups/memory/jobs/one/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3");
  Write("groups/memory/jobs/one/memory.limit_in_bytes", "9223372036854771712");
  ASSERT_TRUE(Group().has_value());
  EXPECT_EQ(Group()->Kills(), 3);
  EXPECT_EQ(Group()->Limit(), std::nullopt);
  Write("groups/memory/jobs/memory.limit_in_bytes", "62914560");
  EXPECT_EQ(Group()->Limit(), 62914560) << "that of a group around it";
}

TEST_F(MemoryGroupTest, OfTheSecondVersion) {
  Write("proc/7/cgroup", "0::/one");
  Write("groups/one/memory.events", "low 0\nhigh 9\nmax 4\noom 2\noom_kill 2\noom_group_kill 0");
  Write("groups/one/memory.max", "max");
  ASSERT_TRUE(Group().has_value());
  EXPECT_EQ(Group()->Kills(), 2);
  EXPECT_EQ(Group()->Limit(), std::nullopt);
  Write("groups/one/memory.max", "1000000");
  EXPECT_EQ(Group()->Limit(), 1'000'000);
}

TEST_F(MemoryGroupTest, InAContainerThatSeesTheHostsPath) {
  Write("proc/7/cgroup", "0::/docker/0123");
  Write("groups/memory.events", "oom_kill 1");
  Write("groups/memory.max", "2000000");
  ASSERT_TRUE(Group().has_value());
  EXPECT_EQ(Group()->Kills(), 1);
  EXPECT_EQ(Group()->Limit(), 2'000'000);
}

TEST_F(MemoryGroupTest, WhoIsEndingMayHaveLeftIt) {
  Write("proc/7/cgroup", "0::/");
  Write("groups/memory.events", "oom_kill 1");
  EXPECT_TRUE(Group().has_value());
  Write("proc/7/stat", "7 (a) b) R 1 7 7 0 -1 4194304 1 2");
  EXPECT_TRUE(Group().has_value());
  Write("proc/7/stat", "7 (a) b) R 1 7 7 0 -1 4194308 1 2");
  EXPECT_FALSE(Group().has_value());
}

TEST_F(MemoryGroupTest, WithoutGroupsOrWhereItIsGoneThereIsNone) {
  EXPECT_FALSE(Group().has_value());
  Write("proc/7/cgroup", "0::/one (deleted)");
  Write("groups/memory.events", "oom_kill 1");
  EXPECT_FALSE(Group().has_value());
}

}  // namespace
}  // namespace sluice
