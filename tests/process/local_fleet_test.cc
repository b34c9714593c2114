#include "executor/processes/local_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "tests/process/limited_group.h"

namespace sluice::executor {
namespace {

using elastic::ExitClass;
using elastic::FleetEvent;

// The "binary" of these tests is a shell that runs its configuration.
class LocalFleetTest : public ::testing::Test {
 protected:
  LocalFleetTest() {
    program_ = std::filesystem::temp_directory_path() /
               ("sluice-fleet-test-" + std::to_string(getpid()) + ".sh");
    std::ofstream(program_) << "#!/bin/sh\n"
                               "size=$(od -An -t u8 -N 8 /dev/fd/3 | tr -d ' ')\n"
                               "eval \"$(head -c $((size + 8)) /dev/fd/3 | tail -c $size)\"\n";
    chmod(program_.c_str(), S_IRWXU);
    ready_ = program_.string() + ".ready";
    mkfifo(ready_.c_str(), S_IRWXU);
    Result<std::unique_ptr<LocalFleet>> fleet = LocalFleet::Make({program_.string()});
    fleet_ = std::move(fleet).value();
    fleet_->Watch([this](const FleetEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
      changed_.notify_all();
    });
  }
  ~LocalFleetTest() override {
    fleet_.reset();
    std::filesystem::remove(program_);
    std::filesystem::remove(ready_);
  }

  Status Launch(const std::string& name, const std::string& script,
                const std::string& secret = "") {
    elastic::ProcessSpec spec;
    spec.name = name;
    spec.config = script;
    spec.secret = secret;
    return fleet_->Launch(spec);
  }
  FleetEvent WaitForExit(const std::string& name) {
    std::unique_lock lock(mutex_);
    for (;;) {
      for (const FleetEvent& event : events_) {
        if (event.name == name && event.kind == FleetEvent::Kind::kExited) {
          return event;
        }
      }
      changed_.wait(lock);
    }
  }
  // What a script prints when it has begun.
  std::string Ready() const { return "echo ready >" + ready_ + "\n"; }
  void WaitUntilReady() const {
    std::string line;
    std::getline(std::ifstream(ready_), line);
    EXPECT_EQ(line, "ready");
  }

  std::filesystem::path program_;
  std::string ready_;  // a named pipe
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FleetEvent> events_;
  std::unique_ptr<LocalFleet> fleet_;
};

TEST_F(LocalFleetTest, ExitsAreEventsWithCodeClassAndLastWords) {
  ASSERT_TRUE(Launch("good", "exit 0").ok());
  ASSERT_TRUE(Launch("bad", "echo 'no such table' >&2; exit 1").ok());
  ASSERT_TRUE(Launch("missing", "exit 127").ok());
  EXPECT_EQ(WaitForExit("good").exit_class, ExitClass::kOk);
  const FleetEvent bad = WaitForExit("bad");
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_EQ(bad.exit_class, ExitClass::kApplication);
  EXPECT_EQ(bad.message, "no such table\n");
  EXPECT_EQ(WaitForExit("missing").exit_class, ExitClass::kConfiguration);
}

TEST_F(LocalFleetTest, SignalsAreMappedAsKubernetesDoes) {
  ASSERT_TRUE(Launch("killed", "kill -KILL $$").ok());
  ASSERT_TRUE(Launch("crashed", "kill -SEGV $$").ok());
  ASSERT_TRUE(Launch("stopped", "exec sleep 1000").ok());
  EXPECT_EQ(WaitForExit("killed").exit_code, 137);
  EXPECT_EQ(WaitForExit("killed").exit_class, ExitClass::kPreempted);
  EXPECT_EQ(WaitForExit("crashed").exit_code, 139);
  EXPECT_EQ(WaitForExit("crashed").exit_class, ExitClass::kApplication);
  ASSERT_TRUE(fleet_->Stop("stopped", 60).ok());
  EXPECT_EQ(WaitForExit("stopped").exit_code, 143);
  EXPECT_EQ(WaitForExit("stopped").exit_class, ExitClass::kPreempted);
}

TEST_F(LocalFleetTest, WhoDoesNotHearTheStopIsKilled) {
  ASSERT_TRUE(Launch("deaf", "trap '' TERM\n" + Ready() + "while :; do sleep 1; done").ok());
  WaitUntilReady();
  ASSERT_TRUE(fleet_->Stop("deaf", 0.2).ok());
  EXPECT_EQ(WaitForExit("deaf").exit_code, 137);
}

TEST_F(LocalFleetTest, ItsMemoryLimitIsOutOfMemory) {
  const auto fleet = LocalFleet::Make({SLUICE_BINARY}).value();
  fleet->Watch([this](const FleetEvent& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  });
  elastic::ProcessSpec spec;
  spec.name = "fat";
  spec.config.assign(200 << 20, 'x');  // is read into memory, whatever it contains
  spec.resources.memory_bytes = 100 << 20;
  ASSERT_TRUE(fleet->Launch(spec).ok());
  const FleetEvent exit = WaitForExit("fat");
  EXPECT_EQ(exit.exit_class, ExitClass::kOutOfMemory) << exit.exit_code << exit.message;
}

TEST_F(LocalFleetTest, WhomTheKernelKillsForMemoryIsToldFromWhomAPersonKills) {
  const LimitedGroup group("20971520");
  if (!group.made()) {
    GTEST_SKIP() << "no control groups that this process may make";
  }
  const std::string moved = "echo $$ >" + group.processes() + "\n";
  ASSERT_TRUE(
      Launch("fat", moved + "sleep 1; exec tail /dev/zero").ok());  // keeps what may be a line
  const FleetEvent fat = WaitForExit("fat");
  EXPECT_EQ(fat.exit_code, 137);
  EXPECT_EQ(fat.exit_class, ExitClass::kKilledForMemory);
  EXPECT_THAT(fat.message, ::testing::HasSubstr("limited to 20 MiB"));
  ASSERT_TRUE(Launch("killed", moved + "kill -KILL $$").ok());
  EXPECT_EQ(WaitForExit("killed").exit_class, ExitClass::kPreempted);
}

TEST_F(LocalFleetTest, SecretsAreNotInTheCommandLineOrTheEnvironment) {
  ASSERT_TRUE(Launch("quiet", Ready() + "while :; do sleep 0.1; done", "s3cr3t-pa55").ok());
  WaitUntilReady();
  const std::string proc = "/proc/" + std::to_string(fleet_->ProcessId("quiet").value());
  for (const char* file : {"/cmdline", "/environ"}) {
    std::ifstream in(proc + file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find("s3cr3t-pa55"), std::string::npos);
  }
}

TEST_F(LocalFleetTest, LargeConfigurationsDoNotBlock) {
  const std::string padding(3 << 20, '#');
  ASSERT_TRUE(Launch("large", "exit 0\n" + padding).ok());
  EXPECT_EQ(WaitForExit("large").exit_class, ExitClass::kOk);
}

TEST_F(LocalFleetTest, NamesAreUniqueAndUnknownOnesAreErrors) {
  ASSERT_TRUE(Launch("twin", "exec sleep 1000").ok());
  EXPECT_EQ(Launch("twin", "exit 0").code(), Code::kAlreadyExists);
  EXPECT_EQ(fleet_->Stop("nobody", 1).code(), Code::kNotFound);
}

TEST_F(LocalFleetTest, WhatCannotBeStartedIsAnErrorWithItsName) {
  const auto fleet = LocalFleet::Make({"/nonexistent/sluice"}).value();
  elastic::ProcessSpec spec;
  spec.name = "w";
  const Status status = fleet->Launch(spec);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("/nonexistent/sluice"), std::string::npos);
}

TEST_F(LocalFleetTest, NothingOutlivesTheFleet) {
  std::vector<int> pids;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "p" + std::to_string(i);
    ASSERT_TRUE(Launch(name, "trap '' TERM; exec sleep 1000").ok());
    pids.push_back(fleet_->ProcessId(name).value());
  }
  fleet_.reset();
  for (int pid : pids) {
    EXPECT_EQ(kill(pid, 0), -1) << "process " << pid << " is left";
  }
}

}  // namespace
}  // namespace sluice::executor
