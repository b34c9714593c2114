#include "elastic/master/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Names(const std::vector<WorkerPool::Process>& processes) {
  std::vector<std::string> names;
  for (const WorkerPool::Process& process : processes) {
    names.push_back(process.name);
  }
  return names;
}

class WorkerPoolTest : public ::testing::Test {
 protected:
  // An open pool, and the incarnations of the workers that it has started: 1, 2 and so on.
  void Open(uint32_t workers) {
    pool_.emplace(WorkerPool::Options{"job7", workers, 10});
    pool_->Open();
    ASSERT_EQ(pool_->Scale(pool_->wanted(), At(0)).start.size(), workers);
  }
  Result<std::optional<WorkerPool::Process>> Lose(Incarnation worker, ExitClass how, double now) {
    return pool_->Replace(*pool_->Remove(worker), how, "exit code 1", At(now));
  }

  std::optional<WorkerPool> pool_;
};

TEST_F(WorkerPoolTest, StartsNothingBeforeThereIsAFleet) {
  WorkerPool pool({"job7", 2, 10});
  EXPECT_THAT(pool.Scale(3, At(0)).start, IsEmpty());
  pool.Open();
  EXPECT_EQ(pool.wanted(), 3U);
  EXPECT_THAT(Names(pool.Scale(pool.wanted(), At(0)).start),
              ElementsAre("job7-worker-1", "job7-worker-2", "job7-worker-3"));
  EXPECT_THAT(pool.Scale(3, At(0)).start, IsEmpty());
}

TEST_F(WorkerPoolTest, DrainsWhoDisturbsLeast) {
  Open(4);
  for (const uint64_t worker : {1U, 2U, 4U}) {
    EXPECT_TRUE(*pool_->Contact(Incarnation(worker), At(1)));
  }
  EXPECT_FALSE(*pool_->Contact(Incarnation(1), At(1))) << "not for the first time";
  pool_->OnCommitted(Incarnation(4));
  EXPECT_THAT(Names(pool_->Scale(2, At(1)).drain), ElementsAre("job7-worker-3", "job7-worker-2"))
      << "who has not joined, then who has trained nothing";
  EXPECT_TRUE(pool_->drained(Incarnation(3)));
  EXPECT_FALSE(pool_->drained(Incarnation(4)));
  EXPECT_FALSE(Lose(Incarnation(3), ExitClass::kOk, 2)->has_value()) << "it was meant to leave";
  EXPECT_EQ(pool_->Contact(Incarnation(3), At(2)).status().code(), Code::kAborted);
}

TEST_F(WorkerPoolTest, ThoseThatAreNamedLeaveFirst) {
  Open(4);
  EXPECT_TRUE(*pool_->Contact(Incarnation(1), At(1)));
  pool_->OnCommitted(Incarnation(1));
  EXPECT_THAT(Names(pool_->Scale(2, At(1), {"job7-worker-1", "somebody"}).drain),
              ElementsAre("job7-worker-1", "job7-worker-4"));
  EXPECT_THAT(pool_->Scale(2, At(1), {"job7-worker-2"}).drain, IsEmpty()) << "nobody has to";
}

TEST_F(WorkerPoolTest, WhoHadTrainedIsReplacedAtOnceHoweverOften) {
  Open(1);
  for (Incarnation worker(1); worker < Incarnation(100); ++worker) {
    ASSERT_TRUE(*pool_->Contact(worker, At(1)));
    pool_->OnCommitted(worker);
    EXPECT_TRUE(Lose(worker, ExitClass::kApplication, 1)->has_value()) << worker;
  }
}

TEST_F(WorkerPoolTest, StartsThatFailWaitLongerAndLongerAndEnd) {
  Open(1);
  Incarnation last(1);
  for (int failed = 1; failed <= WorkerPool::kFailedStarts; ++failed) {
    const double now = 10.0 * failed;
    if (failed <= 4) {
      ASSERT_TRUE(Lose(last, ExitClass::kApplication, now)->has_value()) << failed;
    } else {
      ASSERT_FALSE(Lose(last, ExitClass::kApplication, now)->has_value()) << failed;
      EXPECT_FALSE(pool_->Empty()) << "one waits to be started";
      EXPECT_THAT(pool_->StartDue(At(now + 0.1)), IsEmpty());
      EXPECT_EQ(pool_->StartDue(At(now + 5)).size(), 1U);
    }
    ++last;
  }
  const auto next = Lose(last, ExitClass::kApplication, 100);
  EXPECT_EQ(next.status().code(), Code::kUnavailable);
  EXPECT_EQ(next.status().message(),
            "9 workers in a row were lost before they had trained a batch; the last one: exit code "
            "1");
  EXPECT_TRUE(pool_->Empty());
}

TEST_F(WorkerPoolTest, PreemptionGetsMorePatienceThanFailure) {
  Open(1);
  int starts = 0;
  for (Incarnation worker(1);; ++worker, ++starts) {
    const double now = 10.0 * static_cast<double>(worker.value());
    const auto next = Lose(worker, ExitClass::kPreempted, now);
    if (!next.ok()) {
      break;
    }
    if (!next->has_value()) {
      ASSERT_EQ(pool_->StartDue(At(now + 6)).size(), 1U);
    }
  }
  EXPECT_EQ(starts, WorkerPool::kPreemptedStarts);
}

TEST_F(WorkerPoolTest, ABatchThatArrivesMakesStartsWorthWhileAgain) {
  Open(2);
  for (Incarnation worker(2); worker < Incarnation(6); ++worker) {
    ASSERT_TRUE(Lose(worker, ExitClass::kApplication, 1)->has_value());
  }
  pool_->OnCommitted(Incarnation(1));
  for (Incarnation worker(6); worker < Incarnation(10); ++worker) {
    EXPECT_TRUE(Lose(worker, ExitClass::kApplication, 1)->has_value()) << worker;
  }
}

TEST_F(WorkerPoolTest, AFleetWithoutRoomIsAskedAgainAndSaidOnce) {
  Open(2);
  EXPECT_TRUE(pool_->OnNoRoom(Incarnation(1), At(1)));
  EXPECT_FALSE(pool_->OnNoRoom(Incarnation(2), At(1.5)));
  EXPECT_THAT(pool_->StartDue(At(1.9)), IsEmpty());
  EXPECT_THAT(Names(pool_->StartDue(At(2.1))), ElementsAre("job7-worker-3"));
  ASSERT_TRUE(*pool_->Contact(Incarnation(3), At(3)));
  EXPECT_THAT(Names(pool_->StartDue(At(3))), ElementsAre("job7-worker-4"));
  EXPECT_TRUE(pool_->OnNoRoom(Incarnation(4), At(4))) << "there was room meanwhile";
}

TEST_F(WorkerPoolTest, AWorkerThatWasDrainedBeforeThereWasRoomForItIsNotStarted) {
  Open(2);
  ASSERT_THAT(Names(pool_->Scale(1, At(1)).drain), ElementsAre("job7-worker-2"));
  EXPECT_FALSE(pool_->OnNoRoom(Incarnation(2), At(1)));
  EXPECT_THAT(pool_->StartDue(At(5)), IsEmpty());
  EXPECT_EQ(pool_->Scale(2, At(5)).start.size(), 1U);
}

TEST_F(WorkerPoolTest, ShrinkingTakesBackStartsThatWait) {
  Open(2);
  ASSERT_TRUE(pool_->OnNoRoom(Incarnation(2), At(1)));
  EXPECT_THAT(pool_->Scale(1, At(1)).drain, IsEmpty());
  EXPECT_THAT(pool_->StartDue(At(5)), IsEmpty());
}

TEST_F(WorkerPoolTest, MemoryIsRaisedSoOftenForThoseThatStartLater) {
  Open(1);
  EXPECT_EQ(pool_->RaiseMemory(), 1.5);
  EXPECT_EQ((*Lose(Incarnation(1), ExitClass::kOutOfMemory, 1))->memory_factor, 1.5);
  for (int raise = 1; raise < WorkerPool::kMemoryRaises; ++raise) {
    EXPECT_TRUE(pool_->RaiseMemory().has_value());
  }
  EXPECT_FALSE(pool_->RaiseMemory().has_value());
}

TEST_F(WorkerPoolTest, AfterASecondOneThatTheKernelKillsForMemoryNoneIsStarted) {
  pool_.emplace(WorkerPool::Options{"job7", 1, 10, 158 << 20});
  pool_->Open();
  ASSERT_EQ(pool_->Scale(1, At(0)).start.size(), 1U);
  ASSERT_TRUE(Lose(Incarnation(1), ExitClass::kKilledForMemory, 1)->has_value());
  const Status end = Lose(Incarnation(2), ExitClass::kKilledForMemory, 1).status();
  EXPECT_EQ(end.sqlstate(), "53200");
  EXPECT_THAT(end.ToString(), ::testing::HasSubstr("about 158 MiB"));
  EXPECT_TRUE(pool_->Empty());
}

TEST_F(WorkerPoolTest, OneThatTheKernelKillsLaterSaysNothingAboutTheNextOnes) {
  Open(1);
  for (Incarnation worker(1); worker < Incarnation(6); ++worker) {
    pool_->OnCommitted(worker);
    EXPECT_TRUE(Lose(worker, ExitClass::kKilledForMemory, 1)->has_value());
  }
}

TEST_F(WorkerPoolTest, NamesAndIncarnationsGoOnFromWhatAnotherHad) {
  WorkerPool pool({"job7", 2, 10});
  pool.Restore(5, Incarnation(8), {{"job7-worker-4", Incarnation(6), true, true, At(0)}});
  pool.Open();
  const std::vector<WorkerPool::Process> started = pool.Scale(2, At(1)).start;
  ASSERT_THAT(Names(started), ElementsAre("job7-worker-6"));
  EXPECT_EQ(started[0].incarnation, Incarnation(8));
}

}  // namespace
}  // namespace sluice::elastic
