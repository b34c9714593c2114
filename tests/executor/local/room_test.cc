#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>

#include "executor/local/room_link.h"
#include "executor/local/room_server.h"
#include "executor/processes/packets_internal.h"
#include "executor/processes/slot_arbiter.h"

// A job as in a process of its own, and gateways that come and go, all in one process.
namespace sluice::executor {
namespace {

class RoomTest : public ::testing::Test {
 protected:
  struct Granted {
    void Take(const Room::Grant& grant) {
      const std::lock_guard lock(mutex);
      now = grant;
      changed.notify_all();
    }
    bool Becomes(uint32_t workers) {
      std::unique_lock lock(mutex);
      return changed.wait_for(lock, std::chrono::seconds(30),
                              [&] { return now.workers == workers; });
    }
    std::mutex mutex;
    std::condition_variable changed;
    Room::Grant now;
  };
  static SlotArbiter::Options Machine(double slots) {
    SlotArbiter::Options options;
    options.slots = slots;
    options.memory_bytes = int64_t{8} << 30;
    options.autoscaler.hysteresis_seconds = 0;
    return options;
  }
  std::unique_ptr<Room> Link(double slots) const {
    return RoomLink::Make(name_, {slots, int64_t{8} << 30}).value();
  }
  static Room::Request Asks(uint32_t min, uint32_t max) {
    Room::Request request;
    request.name = "job";
    request.min = min;
    request.max = max;
    return request;
  }
  static Room::OnGrant To(Granted& granted) {
    return [&granted](const Room::Grant& grant) { granted.Take(grant); };
  }

  const std::string name_ = "sluice-room-test-" + std::to_string(getpid());
};

// Whoever is on the machine can take a name in the kernel's abstract namespace, and keep it.
TEST_F(RoomTest, ANameThatAnotherUserHasGivesFewestWorkers) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can act as another user";
  }
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    constexpr uid_t kNobody = 65'534;
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) {
      _exit(1);
    }
    const auto taken = PacketListener::Open(name_);
    const char answer = taken.ok() ? 'y' : 'n';
    std::ignore = write(ready[1], &answer, 1);
    pause();
    _exit(0);
  }
  char answer = 'n';
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  Granted granted;
  const std::unique_ptr<Room> room = Link(8);
  ASSERT_TRUE(room->Enter(Asks(2, 8), To(granted)).ok());
  EXPECT_TRUE(granted.Becomes(2));
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(RoomTest, AJobIsGrantedWhatTheGatewayHas) {
  Granted others;
  SlotArbiter arbiter(Machine(3));
  const auto server = RoomServer::Start(name_, arbiter).value();
  Granted granted;
  const auto link = Link(64);
  const auto job = link->Enter(Asks(1, 8), To(granted));
  ASSERT_TRUE(job.ok()) << job.status().ToString();
  EXPECT_TRUE(granted.Becomes(3));
  // Another job's smallest number displaces it.
  const int64_t other = arbiter.Enter(Asks(2, 2), To(others)).value();
  EXPECT_TRUE(granted.Becomes(1));
  arbiter.Leave(other);
  link->Leave(*job);
}

TEST_F(RoomTest, WhatTheGatewayRefusesIsTheJobsError) {
  SlotArbiter arbiter(Machine(2));
  const auto server = RoomServer::Start(name_, arbiter).value();
  Granted granted;
  const auto link = Link(64);
  const auto job = link->Enter(Asks(3, 3), To(granted));
  EXPECT_EQ(job.status().sqlstate(), "22023");
}

TEST_F(RoomTest, WithoutAGatewayItTakesWhatTheMachineHas) {
  Granted granted;
  const auto link = Link(2);
  EXPECT_EQ(link->Enter(Asks(3, 3), To(granted)).status().sqlstate(), "22023");
  const auto job = link->Enter(Asks(1, 8), To(granted));
  ASSERT_TRUE(job.ok());
  EXPECT_TRUE(granted.Becomes(2));
}

TEST_F(RoomTest, TheNextGatewayCountsWhatItKeeps) {
  Granted waits;
  Granted fits;
  auto first = std::make_unique<SlotArbiter>(Machine(4));
  auto server = RoomServer::Start(name_, *first).value();
  Granted granted;
  const auto link = Link(64);
  const int64_t job = link->Enter(Asks(3, 3), To(granted)).value();
  ASSERT_TRUE(granted.Becomes(3));
  for (int i = 0; i < 3; ++i) {
    link->WorkerStarted(job);
  }
  server.reset();
  first.reset();
  SlotArbiter second(Machine(4));
  server = RoomServer::Start(name_, second).value();
  // Until the job has reconnected, the whole machine seems free, and would be granted to others.
  for (int i = 0; i < 1500 && second.State().jobs.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ASSERT_EQ(second.State().jobs.size(), 1U);
  EXPECT_TRUE(granted.Becomes(3)) << "it keeps what it has";
  const int64_t small = second.Enter(Asks(1, 1), To(fits)).value();
  EXPECT_TRUE(fits.Becomes(1));
  second.Leave(small);
  const int64_t large = second.Enter(Asks(2, 2), To(waits)).value();
  link->Leave(job);
  EXPECT_TRUE(waits.Becomes(2));
  second.Leave(large);
}

TEST_F(RoomTest, AnotherGatewayTakesOverTheName) {
  SlotArbiter first(Machine(2));
  SlotArbiter second(Machine(5));
  auto server = RoomServer::Start(name_, first).value();
  const auto waiting = RoomServer::Start(name_, second).value();
  Granted granted;
  const auto link = Link(64);
  const int64_t job = link->Enter(Asks(1, 8), To(granted)).value();
  EXPECT_TRUE(granted.Becomes(2));
  server.reset();
  EXPECT_TRUE(granted.Becomes(5));
  link->Leave(job);
}

TEST(RoomNameTest, IsTheSameForWhoeverLogsIn) {
  EXPECT_EQ(RoomNameOf("postgresql://ann@h:5432/d"), RoomNameOf("postgresql://bob@h:5432/d"));
  EXPECT_EQ(RoomNameOf("postgresql://ann@h:5432/d"),
            RoomNameOf("postgresql://bob@h:5432/d?passfile=%2Frun%2Fsource"));
  EXPECT_NE(RoomNameOf("postgresql://ann@h:5432/d"), RoomNameOf("postgresql://ann@h:5432/e"));
  EXPECT_EQ(RoomNameOf("sqlite:/tmp/./a.db"), RoomNameOf("sqlite:/tmp/a.db"));
  EXPECT_EQ(RoomNameOf("what is this"), "");
}

}  // namespace
}  // namespace sluice::executor
