#include "executor/management/job_allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::executor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kMicrosPerSecond = 1'000'000;

class JobAllocationTest : public ::testing::Test {
 protected:
  void Has(double second, int64_t workers) {
    metrics_.push_back({static_cast<int64_t>(second * kMicrosPerSecond), 0,
                        catalog::kJobWorkersMetrics[0], static_cast<double>(workers)});
  }
  void Happens(double second, const std::string& kind, const std::string& detail) {
    events_.push_back({static_cast<int64_t>(second * kMicrosPerSecond), kind, detail});
  }
  // Seconds during which so many workers train so many rows.
  void Trains(int from, int to, uint32_t workers, double rows_per_second) {
    for (int second = from; second < to; ++second) {
      metrics_.push_back({second * kMicrosPerSecond, 0, "workers", static_cast<double>(workers)});
      metrics_.push_back({second * kMicrosPerSecond, 0, "rows_per_second", rows_per_second});
    }
  }

  std::vector<catalog::JobMetric> metrics_;
  std::vector<catalog::JobEvent> events_;
};

TEST_F(JobAllocationTest, EachChangeHasItsReason) {
  Has(1, 1);
  Has(1.2, 2);
  Has(1.4, 3);
  Happens(60, "workers_granted", "the job may have 1 worker: a service needs the room");
  Happens(60.1, "task_requeued", "shard 7");
  Has(60.2, 2);
  Has(60.4, 1);
  Has(90, 3);
  EXPECT_THAT(AllocationsOf(metrics_, events_),
              ElementsAre(Allocation{1 * kMicrosPerSecond, 3, ""},
                          Allocation{60 * kMicrosPerSecond + kMicrosPerSecond / 5, 1,
                                     "the job may have 1 worker: a service needs the room"},
                          Allocation{90 * kMicrosPerSecond, 3, ""}));
}

TEST_F(JobAllocationTest, ALongHistoryKeepsItsEnd) {
  for (int i = 0; i < 100; ++i) {
    Has(10.0 * i, i % 7);
  }
  const std::vector<Allocation> all = AllocationsOf(metrics_, events_);
  EXPECT_EQ(all.size(), kMaxAllocations);
  EXPECT_EQ(all.back().workers, 99 % 7);
  EXPECT_THAT(AllocationsOf({}, {}), IsEmpty());
}

TEST_F(JobAllocationTest, TheFirstSecondWithOtherWorkersIsNotMeasured) {
  Trains(0, 10, 1, 100);
  Trains(10, 11, 2, 40);  // they have just come
  Trains(11, 20, 2, 180);
  EXPECT_THAT(ThroughputOf(metrics_), ElementsAre(Pair(1U, 100.0), Pair(2U, 180.0)));
}

TEST_F(JobAllocationTest, TheKneeIsWhereOneMoreAddsLittle) {
  EXPECT_EQ(DescribeKnee({{1, 100}}), "");
  EXPECT_EQ(DescribeKnee({{1, 100}, {2, 200}, {4, 400}}), "beyond 4 workers");
  EXPECT_EQ(DescribeKnee({{1, 100}, {2, 190}, {3, 200}}),
            "2 workers: one more adds 10 % of the first one's rows");
  EXPECT_EQ(DescribeKnee({{1, 100}, {2, 110}, {4, 400}}), "beyond 4 workers") << "two: noise";
}

}  // namespace
}  // namespace sluice::executor
