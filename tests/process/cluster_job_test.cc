#include "tests/process/cluster_job.h"

#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::executor {
namespace {

using ::testing::HasSubstr;

TEST_F(ClusterJobs, JobsShareOneClusterAndLeaveNothing) {
  LocalCluster cluster(Machine(8));
  Status first = Internal("not run");
  std::thread other([&] {
    const auto source = Open();
    RecordingSink sink;
    first = Run(TrainText("m1", "engine.num_workers=2, engine.num_ps=1"), cluster, *source, sink);
  });
  RecordingSink sink;
  const Status second =
      Run(TrainText("m2", "engine.num_workers=2, engine.num_ps=2"), cluster, *source_, sink);
  other.join();
  EXPECT_TRUE(first.ok()) << first.ToString();
  EXPECT_TRUE(second.ok()) << second.ToString();
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

TEST_F(ClusterJobs, MastersThatKeepDyingAreNotStartedForEver) {
  const std::filesystem::path program = folder_ / "dies.sh";
  std::ofstream(program) << "#!/bin/sh\necho 'no luck' >&2\nexit 1\n";
  chmod(program.c_str(), S_IRWXU);
  LocalCluster::Options machine = Machine(8);
  machine.binary = program.string();
  LocalCluster cluster(machine);
  RecordingSink sink;
  const Status status = Run(TrainText("m", "engine.num_workers=2"), cluster, *source_, sink);
  EXPECT_THAT(status.ToString(), HasSubstr("6 masters were lost one after the other"));
  EXPECT_THAT(status.ToString(), HasSubstr("no luck"));
  EXPECT_EQ(Count(1, "master_lost"), 6);
}

TEST_F(ClusterJobs, ACancelledJobEndsItsProcesses) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  std::stop_source stop;
  sink.on_progress = [&] { stop.request_stop(); };
  const Status status = Run(TrainText("m", "train.epoch=2000, engine.num_workers=2"), cluster,
                            *source_, sink, stop.get_token());
  EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

TEST_F(ClusterJobs, WhenTheGatewayDiesEverythingDies) {
  std::string binary = SLUICE_BINARY, source = "--source=" + Url(),
              sql = "--command=" + TrainText("m", "train.epoch=2000, engine.num_workers=2");
  std::string command = "sql";
  char* arguments[] = {binary.data(), command.data(), source.data(), sql.data(), nullptr};
  pid_t gateway = 0;
  ASSERT_EQ(posix_spawn(&gateway, binary.c_str(), nullptr, nullptr, arguments, environ), 0);
  std::vector<int> processes;
  EXPECT_TRUE(Eventually([&] {
    processes.clear();
    for (const auto& [parent, pid] : Children()) {
      if (parent == gateway) {
        processes.push_back(pid);
      }
    }
    return processes.size() >= 4;  // master, server, workers: all are the gateway's own
  }));
  kill(gateway, SIGKILL);
  waitpid(gateway, nullptr, 0);
  // Well before they would give up because nobody answers.
  EXPECT_TRUE(Eventually(
      [&] {
        for (const auto& [parent, pid] : Children()) {
          if (std::find(processes.begin(), processes.end(), pid) != processes.end()) {
            return false;
          }
        }
        return true;
      },
      10));
}

}  // namespace
}  // namespace sluice::executor
