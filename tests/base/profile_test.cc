#include "base/profile.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(Profile, EveryPhaseHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kPhases; ++i) {
    names.insert(PhaseName(Profile::At(i)));
  }
  EXPECT_EQ(names.size(), kPhases);
  EXPECT_FALSE(names.contains(""));
}

TEST(Profile, TimeBelongsToThePhaseThatTheThreadIsIn) {
  PhaseClock clock(Phase::kBatches);
  const SteadyClock time;
  {
    const PhaseScope reading(&clock, Phase::kDecoding);
    const TimePoint before = time.Now();
    while (SecondsBetween(before, time.Now()) < 0.001) {
    }
    const PhaseScope waiting(&clock, Phase::kDatabase);
  }
  const Profile profile = clock.Read();
  EXPECT_GE(profile.Seconds(Phase::kDecoding), 0.001);
  EXPECT_GT(profile.Seconds(Phase::kDatabase), 0);
  EXPECT_GT(profile.Seconds(Phase::kBatches), 0);
  EXPECT_EQ(profile.Seconds(Phase::kLearning), 0);
}

TEST(Profile, NothingIsCountedTwiceAndNothingIsLost) {
  const SteadyClock time;
  const TimePoint before = time.Now();
  PhaseClock clock(Phase::kStart);
  const TimePoint begun = time.Now();
  for (int i = 0; i < 1000; ++i) {
    const PhaseScope outer(&clock, Phase::kEvaluation);
    const PhaseScope inner(&clock, Phase::kExchange);
  }
  const TimePoint last = time.Now();
  const double total = clock.Read().Total();
  const double longest = SecondsBetween(before, time.Now());
  constexpr double kRounding = 1e-9;
  EXPECT_GE(total, SecondsBetween(begun, last) - kRounding);
  EXPECT_LE(total, longest + kRounding);
}

TEST(Profile, MovesWhatIsKnownFromElsewhere) {
  PhaseClock clock(Phase::kDecoding);
  clock.Move(Phase::kDecoding, Phase::kDatabase, 2);
  const Profile profile = clock.Read();
  EXPECT_EQ(profile.Seconds(Phase::kDatabase), 2);
  EXPECT_LT(profile.Seconds(Phase::kDecoding), 0);  // the rest has hardly begun
}

TEST(Profile, SumsThreads) {
  constexpr int kThreads = 4;
  ProfileSum sum;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&sum] {
        PhaseClock clock(Phase::kBatches, &sum);
        clock.Move(Phase::kBatches, Phase::kLearning, 1);
      });
    }
  }
  sum.Add(Phase::kStoring, 0.5);
  EXPECT_EQ(sum.Get().Seconds(Phase::kLearning), kThreads);
  EXPECT_EQ(sum.Get().Seconds(Phase::kStoring), 0.5);
}

}  // namespace
}  // namespace sluice
