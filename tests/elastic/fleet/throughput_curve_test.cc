#include "elastic/fleet/throughput_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "elastic/fleet/cluster_state.h"

namespace sluice::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr double kKnee = 0.2;

std::optional<uint32_t> KneeOf(const Throughput& throughput) {
  ClusterJob job;
  job.throughput = throughput;
  return elastic::KneeOf(job, kKnee);
}

TEST(ThroughputCurve, ANumberThatWasMeasuredTooLowIsNoKnee) {
  const Throughput measured = {{1, 100}, {2, 195}, {3, 200}, {4, 360}, {5, 450}};
  EXPECT_EQ(KneeOf(measured), 2U);
  EXPECT_THAT(LeastConcave(measured), ElementsAre(Pair(1, 100), Pair(2, 195), Pair(5, 450)));
  EXPECT_EQ(KneeOf(LeastConcave(measured)), std::nullopt);
}

TEST(ThroughputCurve, ARealKneeStays) {
  const Throughput measured = {{1, 100}, {2, 190}, {3, 270}, {4, 280}, {6, 290}};
  EXPECT_EQ(LeastConcave(measured), measured);
  EXPECT_EQ(KneeOf(LeastConcave(measured)), 3U);
}

TEST(ThroughputCurve, MoreWorkersDoNotDoLessWork) {
  EXPECT_THAT(LeastConcave({{1, 100}, {2, 190}, {4, 150}}),
              ElementsAre(Pair(1, 100), Pair(2, 190), Pair(4, 190)));
}

TEST(ThroughputCurve, AFirstWorkerThatWasMeasuredTooLowIsNoReasonToStay) {
  EXPECT_THAT(LeastConcave({{1, 10}, {2, 200}}), ElementsAre(Pair(2, 200)));
  EXPECT_THAT(LeastConcave({}), IsEmpty());
}

void Repeat(ThroughputCurve& curve, int times, uint32_t workers, double rate) {
  for (int i = 0; i < times; ++i) {
    curve.Measure(workers, rate);
  }
}

TEST(ThroughputCurve, OneMeasurementIsNotEnough) {
  ThroughputCurve curve;
  Repeat(curve, 4, 2, 1000);  // these do not count at all
  for (const double rate : {80, 120, 90}) {
    curve.Measure(2, rate);
    EXPECT_THAT(curve.Points(), IsEmpty());
  }
  curve.Measure(2, 110);
  EXPECT_THAT(curve.Points(), ElementsAre(Pair(2, 100)));
  curve.Forget();
  EXPECT_THAT(curve.Points(), IsEmpty());
}

// As measured with eleven workers, of whom eleven more opened their connections for two seconds,
// and the rate is an average of which a second is half: the new ones were sent away.
TEST(ThroughputCurve, GrowthIsNotJudgedByItsFirstSeconds) {
  ThroughputCurve curve;
  Repeat(curve, 60, 11, 22000);
  double rate = 22000;
  for (const double now : {22000, 22000, 33000, 44000, 44000, 44000, 44000, 44000}) {
    rate += 0.5 * (now - rate);
    curve.Measure(22, rate);
    EXPECT_EQ(KneeOf(curve.Points()), std::nullopt) << rate;
  }
  EXPECT_EQ(curve.Points().back().first, 22U);
}

// Nor by those of more workers, which the average still contains.
TEST(ThroughputCurve, ShrinkingIsNoKnee) {
  ThroughputCurve curve;
  Repeat(curve, 8, 4, 400);
  double rate = 400;
  for (int i = 0; i < 20; ++i) {
    rate += 0.5 * (200 - rate);
    curve.Measure(2, rate);
  }
  EXPECT_EQ(KneeOf(curve.Points()), std::nullopt);
}

TEST(ThroughputCurve, AMachineThatBecomesBusierDoesSoForAnyNumber) {
  ThroughputCurve curve;
  Repeat(curve, 8, 1, 100);
  Repeat(curve, 8, 3, 240);
  Repeat(curve, 60, 3, 120);
  const Throughput points = curve.Points();
  ASSERT_EQ(points.size(), 2U);
  EXPECT_NEAR(points[0].second, 50, 0.1);
  EXPECT_NEAR(points[1].second, 120, 0.1);
}

}  // namespace
}  // namespace sluice::elastic
