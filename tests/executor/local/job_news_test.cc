#include "executor/local/job_news.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_process.pb.h"
#include "executor/processes/packets_internal.h"

namespace sluice::executor {
namespace {

// Where listeners look for the job of this process.
std::string NameOfThisProcess() {
  const catalog::JobRunner runner = ThisProcess();
  return fmt::format("sluice-job-{}-{}", runner.pid, runner.started);
}

std::string EndHeardBy(const PacketSocket& launcher) {
  PollForReading({launcher.descriptor()},
                 std::chrono::steady_clock::now() + std::chrono::seconds(30));
  const auto packet = launcher.Receive();
  JobNews news;
  return packet.ok() && packet->has_value() && news.ParseFromString(**packet) ? news.ended() : "";
}

TEST(JobNews, ListenersFindTheJob) {
  PacketPair pair = MakePacketPair().value();
  const auto publisher = JobPublisher::Open(dup(pair.theirs.descriptor())).value();
  const auto listener = ListenToJob(ThisProcess()).value();
  publisher->Ended("answer");
  EXPECT_EQ(EndHeardBy(pair.ours), "answer");
}

// Any process of this machine can take a name before the job does.
TEST(JobNews, AJobWhoseNameIsTakenRunsAndTellsWhoStartedIt) {
  const PacketListener taken = PacketListener::Open(NameOfThisProcess()).value();
  PacketPair pair = MakePacketPair().value();
  const auto publisher = JobPublisher::Open(dup(pair.theirs.descriptor()));
  ASSERT_TRUE(publisher.ok()) << publisher.status().ToString();
  (*publisher)->Ended("answer");
  EXPECT_EQ(EndHeardBy(pair.ours), "answer");
}

}  // namespace
}  // namespace sluice::executor
