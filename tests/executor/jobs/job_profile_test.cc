#include "executor/jobs/job_profile.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::executor {
namespace {

TEST(JobProfile, IsStoredAsMetricsAndReadBack) {
  Profile profile;
  profile.Add(Phase::kDatabase, 1.5);
  profile.Add(Phase::kLearning, 0.25);
  const std::vector<catalog::JobMetric> metrics = MetricsOf(profile, 7);
  ASSERT_EQ(metrics.size(), 2U);  // nothing of phases without time
  EXPECT_EQ(metrics[0].name, "seconds_database");
  EXPECT_EQ(metrics[0].micros, 7);
  const std::optional<Profile> read = ProfileOf(metrics);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->Seconds(Phase::kDatabase), 1.5);
  EXPECT_EQ(read->Seconds(Phase::kLearning), 0.25);
  EXPECT_EQ(read->Total(), 1.75);
}

TEST(JobProfile, SumsWhatEachProcessOfTheJobRecorded) {
  const std::vector<catalog::JobMetric> metrics = {
      {1, 0, "seconds_learning", 2}, {2, 0, "seconds_learning", 3}, {2, 0, "loss", 100}};
  const std::optional<Profile> profile = ProfileOf(metrics);
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(profile->Seconds(Phase::kLearning), 5);
  EXPECT_EQ(profile->Total(), 5);
}

TEST(JobProfile, AJobOfAnEarlierVersionHasNone) {
  EXPECT_FALSE(ProfileOf({}).has_value());
  EXPECT_FALSE(ProfileOf({{1, 1, "loss", 0.5}, {1, 1, "rows_per_second", 9}}).has_value());
}

TEST(JobProfile, IsDescribedInTheOrderOfThePhases) {
  Profile profile;
  profile.Add(Phase::kLearning, 0.75);
  profile.Add(Phase::kDatabase, 0.25);
  using Lines = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(
      DescribeProfile(profile),
      (Lines{{"database", "0.250 s, 25 %"}, {"learning", "0.750 s, 75 %"}, {"total", "1.000 s"}}));
}

}  // namespace
}  // namespace sluice::executor
