#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "elastic/fleet/autoscaler.h"

// A job that has no room beside jobs of lower priority, whose masters and servers stay where they
// are even without workers.
namespace sluice::elastic {
namespace {

class SuspensionTest : public ::testing::Test {
 protected:
  SuspensionTest() { state_.nodes.push_back({"n", {10, int64_t{1} << 40, 0}}); }

  // Master and server of one processor each, and workers.
  size_t Job(int priority, uint32_t min, uint32_t running, bool can_suspend = true) {
    ClusterJob job;
    job.name = "job" + std::to_string(state_.jobs.size());
    job.min = min;
    job.max = 10;
    job.priority = priority;
    job.arrival = TimePoint(std::chrono::seconds(state_.jobs.size()));
    job.worker = {1, 1, 0};
    job.can_suspend = can_suspend;
    state_.jobs.push_back(job);
    const size_t index = state_.jobs.size() - 1;
    const bool runs = running > 0;
    Add(index, false, runs, 2);
    Add(index, true, true, running);
    return index;
  }
  void Add(size_t job, bool worker, bool placed, uint32_t count) {
    ClusterProcess process;
    process.job = static_cast<int>(job);
    process.worker = worker;
    process.request = worker ? state_.jobs[job].worker : Capacity{1, 1, 0};
    process.node = placed ? 0 : ClusterProcess::kNone;
    state_.processes.insert(state_.processes.end(), count, process);
  }
  // A second passes; suspended jobs end, and those that are resumed start with master and server.
  ScalingDecision Second() {
    now_ += std::chrono::seconds(1);
    ScalingDecision decision = Autoscale(state_, {}, history_, now_);
    history_ = decision.history;
    for (const size_t victim : decision.victims) {
      state_.processes[victim].terminating = true;
    }
    for (const auto& [index, node] : decision.puts) {
      if (!state_.jobs[static_cast<size_t>(state_.processes[index].job)].suspended) {
        state_.processes[index].node = node;
      }
    }
    for (const ScalingDecision::Start& start : decision.starts) {
      if (!state_.jobs[static_cast<size_t>(start.job)].suspended) {
        Add(static_cast<size_t>(start.job), true, true, 1);
      }
    }
    std::erase_if(state_.processes, [](const ClusterProcess& each) { return each.terminating; });
    for (size_t i = 0; i < state_.jobs.size(); ++i) {
      const bool suspend = decision.targets[i].suspend;
      changes_ += suspend != state_.jobs[i].suspended ? 1 : 0;
      if (suspend && !state_.jobs[i].suspended) {
        End(i);
        Add(i, false, false, 2);  // what it would start with
      }
      state_.jobs[i].suspended = suspend;
    }
    return decision;
  }
  void Seconds(int count) {
    for (int i = 0; i < count; ++i) {
      Second();
    }
  }
  void End(size_t job) {
    std::erase_if(state_.processes,
                  [job](const ClusterProcess& each) { return each.job == static_cast<int>(job); });
  }
  uint32_t Workers(size_t job) const {
    return static_cast<uint32_t>(std::count_if(
        state_.processes.begin(), state_.processes.end(), [job](const ClusterProcess& each) {
          return each.worker && each.job == static_cast<int>(job) && !each.terminating;
        }));
  }
  bool Suspended(size_t job) const { return state_.jobs[job].suspended; }

  ClusterState state_;
  AutoscalerHistory history_;
  TimePoint now_ = std::chrono::hours(1);
  int changes_ = 0;
};

TEST_F(SuspensionTest, WhereNothingElseHelpsAndUntilThereIsRoomAgain) {
  const size_t low = Job(0, 1, 4), high = Job(5, 7, 0);
  Seconds(9);
  EXPECT_EQ(changes_, 0) << "it has not waited for long";
  Seconds(3);
  ASSERT_TRUE(Suspended(low));
  Seconds(30);
  EXPECT_GE(Workers(high), 7U);
  EXPECT_TRUE(Suspended(low));
  EXPECT_EQ(Second().targets[low].reason.substr(0, 10), "suspended:");
  EXPECT_EQ(changes_, 1);
  state_.jobs[high].max = state_.jobs[high].min = 5;  // it needs less from now on
  Seconds(9);
  EXPECT_TRUE(Suspended(low)) << "the room may go again";
  Seconds(20);
  EXPECT_FALSE(Suspended(low));
  EXPECT_EQ(Workers(high), 5U);
  EXPECT_EQ(Workers(low), 1U);
  EXPECT_EQ(changes_, 2);
}

TEST_F(SuspensionTest, NotWhereTheWorkersOfTheOthersAreEnough) {
  const size_t low = Job(0, 2, 6), high = Job(5, 6, 0);
  Seconds(60);
  EXPECT_EQ(changes_, 0);
  EXPECT_EQ(Workers(high), 6U) << "the other one waits with its master and server";
  EXPECT_EQ(Workers(low), 0U);
}

TEST_F(SuspensionTest, TheLowestAsFewAsPossibleAndOnlyThoseThatCan) {
  const size_t middle = Job(1, 1, 1), lowest = Job(0, 1, 1), cannot = Job(0, 1, 1, false);
  const size_t high = Job(5, 4, 0);
  Seconds(60);
  EXPECT_FALSE(Suspended(middle));
  EXPECT_TRUE(Suspended(lowest));
  EXPECT_FALSE(Suspended(cannot));
  EXPECT_EQ(Workers(high), 4U);
  EXPECT_EQ(changes_, 1);
}

TEST_F(SuspensionTest, ALowerOneIsSparedIfAHigherOneHasToGoAnyway) {
  const size_t small = Job(0, 1, 1);
  state_.processes[0].request.cpu = state_.processes[1].request.cpu = 0.1;
  state_.processes[2].request.cpu = state_.jobs[small].worker.cpu = 0.1;
  const size_t large = Job(1, 1, 4), high = Job(5, 7, 0);
  Seconds(60);
  EXPECT_FALSE(Suspended(small));
  EXPECT_TRUE(Suspended(large));
  EXPECT_EQ(Workers(high), 7U);
}

TEST_F(SuspensionTest, NobodyForWhatWouldNotFitEvenThen) {
  Job(0, 1, 4);
  Job(5, 9, 0);
  Job(0, 9, 0);
  Seconds(60);
  EXPECT_EQ(changes_, 0);
}

TEST_F(SuspensionTest, ThoseThatNothingHelpsHoldUpNobody) {
  for (int i = 0; i < 7; ++i) {
    state_.jobs[Job(9, 20, 0)].max = 20;
  }
  const size_t low = Job(0, 1, 4), high = Job(5, 7, 0);
  Seconds(30);
  EXPECT_TRUE(Suspended(low));
  Seconds(30);
  EXPECT_GE(Workers(high), 7U);
  EXPECT_EQ(changes_, 1);
}

// Nine of ten processors each: what becomes free is for the one that was suspended.
TEST_F(SuspensionTest, ASuspendedJobComesBeforeLowerOnesThatWait) {
  const size_t job = Job(1, 7, 7), high = Job(5, 7, 0);
  Seconds(30);
  ASSERT_TRUE(Suspended(job));
  const size_t lower = Job(0, 1, 0);
  Seconds(30);
  End(high);
  state_.jobs[high].min = state_.jobs[high].max = 0;
  Seconds(9);
  EXPECT_TRUE(Suspended(job));
  EXPECT_EQ(Workers(lower), 0U);
  Seconds(20);
  EXPECT_GE(Workers(job), 7U);
  EXPECT_EQ(Workers(lower), 0U);
  EXPECT_EQ(changes_, 2);
}

TEST_F(SuspensionTest, ALowerJobIsSuspendedForASuspendedOne) {
  const size_t job = Job(1, 7, 0), lower = Job(0, 1, 3);
  state_.jobs[job].suspended = true;
  Seconds(9);
  EXPECT_EQ(changes_, 0);
  Seconds(30);
  EXPECT_TRUE(Suspended(lower));
  EXPECT_GE(Workers(job), 7U);
  Seconds(30);
  EXPECT_EQ(changes_, 2);
}

TEST_F(SuspensionTest, NotOneThatIsNearlyDone) {
  const size_t low = Job(0, 1, 4);
  Job(5, 7, 0);
  state_.jobs[low].throughput = {{1, 100}, {4, 400}};
  state_.jobs[low].rows_left = 500;
  Seconds(60);
  EXPECT_EQ(changes_, 0);
}

}  // namespace
}  // namespace sluice::elastic
