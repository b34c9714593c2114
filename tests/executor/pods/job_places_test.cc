#include "executor/pods/job_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace sluice::executor {
namespace {

using elastic::Role;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kFull[] = "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.";

class JobPlacesTest : public ::testing::Test {
 protected:
  static TimePoint At(double after) {
    return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(after));
  }
  // Two servers and two workers, all with places.
  void Fill() {
    for (const char* const server : {"ps-0", "ps-1"}) {
      places_.OnMade(server, Role::kParameterServer, false);
      places_.OnPlaced(server);
    }
    for (const char* const worker : {"worker-1", "worker-2"}) {
      places_.OnMade(worker, Role::kWorker, false);
      places_.OnPlaced(worker);
    }
  }

  JobPlaces places_{2, 2};
};

TEST_F(JobPlacesTest, WorkersWaitForEachServersPlace) {
  EXPECT_FALSE(places_.MayMakeWorkers());  // no server has been created yet
  places_.OnMade("ps-0", Role::kParameterServer, false);
  places_.OnPlaced("ps-0");
  EXPECT_FALSE(places_.MayMakeWorkers());
  places_.OnMade("ps-1", Role::kParameterServer, false);
  EXPECT_FALSE(places_.MayMakeWorkers());
  places_.OnPlaced("ps-1");
  EXPECT_TRUE(places_.MayMakeWorkers());
}

TEST_F(JobPlacesTest, WithoutServersNobodyWaits) {
  EXPECT_TRUE(JobPlaces(0, 4).MayMakeWorkers());
}

TEST_F(JobPlacesTest, AServerThatIsLostComesBeforeNewWorkers) {
  Fill();
  places_.OnGone("ps-0");
  EXPECT_TRUE(places_.MayMakeWorkers());  // fewer may be wanted now
  places_.OnMade("ps-2", Role::kParameterServer, false);
  EXPECT_FALSE(places_.MayMakeWorkers());
  EXPECT_EQ(places_.Grant(At(100)), std::nullopt);  // the scheduler has not tried to place it yet
}

TEST_F(JobPlacesTest, WorkersGiveWayUntilTheServerHasItsPlace) {
  Fill();
  places_.OnGone("ps-0");
  places_.OnMade("ps-2", Role::kParameterServer, false);
  places_.OnWaits("ps-2", kFull, true, At(10));
  EXPECT_EQ(places_.Grant(At(10.5)), std::nullopt);
  EXPECT_EQ(places_.Grant(At(11)), 1U);
  EXPECT_EQ(places_.Grant(At(11.1)), std::nullopt);
  places_.OnGone("worker-2");
  // Taking the last worker would not help.
  EXPECT_EQ(places_.Grant(At(60)), std::nullopt);
  places_.OnPlaced("ps-2");
  EXPECT_EQ(places_.Grant(At(61)), 2U);
  EXPECT_EQ(places_.Grant(At(62)), std::nullopt);
}

TEST_F(JobPlacesTest, AnotherWorkerGoesWhereTheFirstWasOfNoUse) {
  JobPlaces places(1, 3);
  for (const char* const worker : {"worker-1", "worker-2", "worker-3"}) {
    places.OnMade(worker, Role::kWorker, true);
  }
  places.OnMade("ps-0", Role::kParameterServer, false);
  places.OnWaits("ps-0", kFull, true, At(0));
  EXPECT_EQ(places.Grant(At(1)), 2U);
  places.OnGone("worker-3");
  EXPECT_EQ(places.Grant(At(1 + JobPlaces::kNextSeconds - 0.1)), std::nullopt);
  EXPECT_EQ(places.Grant(At(1 + JobPlaces::kNextSeconds)), 1U);
}

TEST_F(JobPlacesTest, NoWorkerGivesWayToAServerThatTrainingDoesNotNeed) {
  for (const bool created : {false, true}) {
    JobPlaces places(1, 3, created);
    places.OnMade("ps-0", Role::kParameterServer, true);
    for (const char* const worker : {"worker-1", "worker-2", "worker-3"}) {
      places.OnMade(worker, Role::kWorker, true);
    }
    places.OnMade("ps-1", Role::kParameterServer, false);
    places.OnWaits("ps-1", kFull, true, At(0));
    EXPECT_EQ(places.Grant(At(100)), std::nullopt);
    EXPECT_TRUE(places.MayMakeWorkers()) << "a lost one is replaced";
    places.OnGone("ps-0");
    EXPECT_EQ(places.Grant(At(101)), 2U) << "now it is the only one";
    EXPECT_FALSE(places.MayMakeWorkers());
  }
}

TEST_F(JobPlacesTest, WhoWaitsForLongIsToldOnce) {
  places_.OnMade("ps-0", Role::kParameterServer, false);
  places_.OnWaits("ps-0", "the scheduler", false, At(0));
  EXPECT_THAT(places_.News(At(100)), IsEmpty());
  places_.OnWaits("ps-0", kFull, true, At(100));
  EXPECT_THAT(places_.News(At(100.5)),
              ElementsAre(std::string("parameter server ps-0 waits: ") + kFull));
  EXPECT_THAT(places_.News(At(110)), IsEmpty());
  // The reason changes, but is not reported every second.
  places_.OnWaits("ps-0", "Unschedulable: 0/3 nodes are available", true, At(111));
  EXPECT_THAT(places_.News(At(112)), IsEmpty());
  EXPECT_THAT(places_.News(At(131)),
              ElementsAre("parameter server ps-0 waits: Unschedulable: 0/3 nodes are available"));
}

TEST_F(JobPlacesTest, ManyWorkersAreOneLine) {
  Fill();
  for (const char* const worker : {"worker-3", "worker-4", "worker-5"}) {
    places_.OnMade(worker, Role::kWorker, false);
    places_.OnWaits(worker, kFull, true, At(0));
  }
  EXPECT_THAT(places_.News(At(JobPlaces::kNewsSeconds - 0.1)), IsEmpty());
  EXPECT_THAT(places_.News(At(JobPlaces::kNewsSeconds)),
              ElementsAre(std::string("3 workers wait: ") + kFull));
}

TEST_F(JobPlacesTest, OthersAreWanted) {
  Fill();
  places_.Want(2);
  EXPECT_EQ(places_.Grant(At(1)), std::nullopt) << "as before";
  places_.Want(3);
  EXPECT_EQ(places_.Grant(At(1)), 3U);
  EXPECT_EQ(places_.Grant(At(2)), std::nullopt);
  places_.OnGone("ps-0");
  places_.OnMade("ps-2", Role::kParameterServer, false);
  places_.Want(4);
  EXPECT_EQ(places_.Grant(At(3)), std::nullopt) << "a server comes first";
  places_.Want(1);
  EXPECT_EQ(places_.Grant(At(3)), 1U) << "fewer need no places";
  places_.OnPlaced("ps-2");
  EXPECT_EQ(places_.Grant(At(4)), 1U);
}

// Eight workers where two have room: two keep waiting.
TEST(JobPlacesWithoutRoom, AtMostTwoWorkersWait) {
  JobPlaces places(0, 8);
  const auto at = [](double seconds) {
    return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
  };
  for (int i = 1; i <= 8; ++i) {
    const std::string name = "worker-" + std::to_string(i);
    places.OnMade(name, Role::kWorker, false);
    if (i <= 2) {
      places.OnPlaced(name);
    } else {
      places.OnWaits(name, kFull, true, at(0));
    }
  }
  EXPECT_EQ(places.Grant(at(0.5)), std::nullopt);  // the scheduler has hardly looked
  EXPECT_EQ(places.Grant(at(2)), 4U);
  EXPECT_TRUE(places.crowded());
  EXPECT_THAT(places.WaitingWorkers(),
              ElementsAre("worker-8", "worker-7", "worker-6", "worker-5", "worker-4", "worker-3"));
  for (const char* const name : {"worker-5", "worker-6", "worker-7", "worker-8"}) {
    places.OnGone(name);
  }
  EXPECT_EQ(places.Grant(at(3)), std::nullopt);  // nothing oscillates
  EXPECT_EQ(places.Grant(at(300)), std::nullopt);
  places.OnPlaced("worker-3");
  EXPECT_EQ(places.Grant(at(301)), 5U);  // another one takes its turn
  places.OnMade("worker-9", Role::kWorker, false);
  places.OnGone("worker-1");  // preempted
  EXPECT_EQ(places.Grant(at(302)), 4U);
  places.Want(3);  // a controller that has found out
  EXPECT_EQ(places.Grant(at(303)), 3U);
  EXPECT_FALSE(places.crowded());
}

TEST(JobPlacesWithoutRoom, WorkersThatAllFindTheirPlacesAreMadeAtOnce) {
  JobPlaces places(0, 30);
  for (int i = 1; i <= 30; ++i) {
    places.OnMade("worker-" + std::to_string(i), Role::kWorker, false);
  }
  EXPECT_EQ(places.Grant(TimePoint(1)), std::nullopt);
  EXPECT_FALSE(places.crowded());
}

}  // namespace
}  // namespace sluice::executor
