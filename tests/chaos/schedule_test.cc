#include "tests/chaos/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace sluice::chaos {
namespace {

constexpr uint64_t kSeeds = 2'000;

TEST(Schedule, ASeedSaysAll) {
  std::set<std::string> different;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string once = Describe(DrawSchedule(seed, true));
    EXPECT_EQ(once, Describe(DrawSchedule(seed, true)));
    different.insert(once);
  }
  EXPECT_EQ(different.size(), kSeeds);
}

TEST(Schedule, AboutHalfAreStormsAndEveryStyleMeetsEveryMode) {
  std::map<std::pair<Style, Mode>, int> met;
  uint64_t storms = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Schedule schedule = DrawSchedule(seed, true);
    ++met[{schedule.style, schedule.job.mode}];
    storms += IsStorm(schedule.style) ? 1 : 0;
  }
  EXPECT_GT(storms, kSeeds * 45 / 100);
  EXPECT_LT(storms, kSeeds * 55 / 100);
  EXPECT_EQ(met.size(), 9 * kModes.size());
}

TEST(Schedule, TwelveSeedsTrainEveryTableInEveryMode) {
  std::set<std::pair<Mode, Table>> trained;
  for (uint64_t seed = 100; seed < 112; ++seed) {
    const Job job = DrawSchedule(seed, true).job;
    trained.emplace(job.mode, job.table);
  }
  EXPECT_EQ(trained.size(), kModes.size() * kTables.size());
}

// With more in a row than a gateway starts again, the job would fail through the schedule's own
// fault.
TEST(Schedule, AtMostFiveMastersAreKilled) {
  int most = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto killed = [&](bool kill_masters) {
      const Schedule schedule = DrawSchedule(seed, kill_masters);
      return static_cast<int>(
          std::count_if(schedule.faults.begin(), schedule.faults.end(), [](const Fault& fault) {
            return fault.target == Target::kMaster && fault.kind == FaultKind::kKill;
          }));
    };
    most = std::max(most, killed(true));
    EXPECT_EQ(killed(false), 0);
  }
  EXPECT_EQ(most, 5);
}

TEST(Schedule, OnlyAScheduleOfLostCopiesOrFilesTakesServersRegardless) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Schedule schedule = DrawSchedule(seed, true);
    const bool may = schedule.style == Style::kLostCopies || schedule.style == Style::kFiles;
    for (const Fault& fault : schedule.faults) {
      EXPECT_TRUE(may || fault.target != Target::kServer || (!fault.regardless && !fault.all))
          << Describe(schedule);
    }
  }
}

}  // namespace
}  // namespace sluice::chaos
