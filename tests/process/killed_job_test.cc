#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/jobs/lost_jobs.h"
#include "tests/process/outliving_job.h"

// The processes of jobs are killed, alone or with their gateway: the jobs continue.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;

class KilledJobs : public OutlivingJobs {
 protected:
  // Processes of the job, and of its master, workers and servers.
  std::vector<int> ProcessesOf(int64_t job) const {
    const pid_t process = ProcessOf(job);
    std::vector<int> all{process};
    for (const auto& [parent, pid] : Children()) {
      if (parent == process) {
        all.push_back(pid);
      }
    }
    return all;
  }
  static bool NoneLives(const std::vector<int>& pids) {
    return std::none_of(pids.begin(), pids.end(), [](int pid) { return Lives(pid); });
  }
  std::string Folder() const { return folder_.string() + "/checkpoints"; }
  std::string Saved() const {
    return "engine.sync=true, engine.seed=7, train.batch_size=2000, "
           "train.save_checkpoints_steps=20,"
           " engine.checkpoint_dir='" +
           Folder() + "/c'";
  }
  std::string ShaOf(const std::string& model) const {
    return Ask("SELECT weights_sha256 FROM sluice_model_versions WHERE name = '" + model + "'")
        .output;
  }
  bool WroteCheckpoint(int64_t job) const {
    return Eventually([&] { return Count(job, "checkpoint_written") > 0; });
  }
};

// No client looks at it: the gateway finds it on its own.
TEST_F(KilledJobs, GoOnFromTheirCheckpoint) {
  StartGateway("--slots 8 --checkpoint-root " + Folder());
  const std::string plain = "engine.sync=true, engine.seed=7, train.batch_size=2000, " + Fleet();
  ASSERT_EQ(Ask(Long("plain", plain)).exit_code, 0);
  ASSERT_EQ(Ask("SET sluice.async = on; " + Long("m", Saved() + ", " + Fleet())).exit_code, 0);
  ASSERT_TRUE(WroteCheckpoint(2));
  const std::vector<int> lost = ProcessesOf(2);
  ASSERT_GE(lost.size(), 6U) << "its own, a master, two workers, two servers";
  Signal(lost[0], SIGKILL);
  EXPECT_TRUE(Eventually([&] { return Count(2, "taken_over") == 1; }));
  EXPECT_TRUE(Eventually([&] { return NoneLives(lost); }));
  ExpectWhole(2, "m");
  EXPECT_EQ(Count(2, "resumed"), 1);
  EXPECT_EQ(ShaOf("m"), ShaOf("plain"));
}

TEST_F(KilledJobs, GoOnWithTheNextGateway) {
  constexpr int kLong = 600;            // epochs of one process
  constexpr int kLonger = 3 * kEpochs;  // the fleet works until the other one has a checkpoint
  StartGateway("--slots 8 --checkpoint-root " + Folder());
  const std::string there = "split.kind='none', train.epoch=" + std::to_string(kLonger) + ", ";
  ASSERT_EQ(Ask("SET sluice.async = on; " + TrainText("n", there + Fleet())).exit_code, 0);
  ASSERT_TRUE(HasBegun(1));
  const std::string here =
      "split.kind='none', train.batch_size=2000, engine.strategy='local', "
      "train.save_checkpoints_steps=200, engine.checkpoint_dir='" +
      Folder() + "/c', train.epoch=" + std::to_string(kLong);
  ASSERT_EQ(Ask("SET sluice.async = on; " + TrainText("m", here)).exit_code, 0);
  ASSERT_TRUE(WroteCheckpoint(2));
  const std::vector<int> first = ProcessesOf(1);
  const std::vector<int> second = ProcessesOf(2);
  Signal(gateway_->pid(), SIGKILL);
  Signal(first[0], SIGKILL);
  Signal(second[0], SIGKILL);
  EXPECT_TRUE(Eventually([&] { return NoneLives(first) && NoneLives(second); }));
  EXPECT_EQ(StateOf(1), catalog::JobState::kRunning);
  StartGateway("--slots 8 --checkpoint-root " + Folder());
  ExpectWhole(1, "n", kLonger);
  ExpectWhole(2, "m", kLong);
  EXPECT_EQ(Count(2, "resumed"), 1);
}

// As when a machine shuts down.
TEST_F(KilledJobs, ASignalIsNoEnd) {
  StartGateway();
  ASSERT_EQ(Ask("SET sluice.async = on; " + Long("m", Fleet())).exit_code, 0);
  ASSERT_TRUE(HasBegun(1));
  Signal(ProcessOf(1), SIGTERM);
  ExpectWhole(1, "m");
  EXPECT_EQ(Count(1, "taken_over"), 1);
}

TEST_F(KilledJobs, GoOnForThoseWhoWaitForThem) {
  StartGateway();
  BackgroundProcess client("exec " + Client(Long("m", Fleet())));
  ASSERT_TRUE(HasBegun(1));
  Signal(ProcessOf(1), SIGKILL);
  std::string said;
  for (std::string line = client.ReadLine(); !line.empty(); line = client.ReadLine()) {
    said += line + "\n";
  }
  EXPECT_THAT(said, HasSubstr("the process of job 1 was lost: another one goes on"));
  EXPECT_THAT(said, HasSubstr("\nm,1,1,DNNClassifier," + std::to_string(kRows) + ","));
  EXPECT_EQ(Count(1, "taken_over"), 1);
}

TEST_F(KilledJobs, AreGivenUpWhenTheyNeverComeToAnything) {
  StartGateway();
  ASSERT_EQ(
      Ask("SET sluice.async = on; " + TrainText("m", "train.epoch=100000, " + Fleet())).exit_code,
      0);
  for (int taken = 0; taken <= kMaxTakeovers; ++taken) {
    ASSERT_TRUE(Eventually([&] { return Count(1, "taken_over") == taken; }));
    const pid_t process = ProcessOf(1);
    ASSERT_GT(process, 0);
    Signal(process, SIGKILL);
    ASSERT_TRUE(Eventually([&] { return !Lives(process); }));
  }
  const ShellOutcome waited = Ask("WAIT JOB 1");
  EXPECT_NE(waited.exit_code, 0);
  EXPECT_THAT(waited.output, HasSubstr("08006: job 1 failed: 4 processes were lost one after the "
                                       "other"));
  EXPECT_THAT(waited.output, HasSubstr("with engine.checkpoint_dir it would continue"));
}

TEST_F(KilledJobs, OfAShellGoOnWhenItsUserLooks) {
  const std::string here = "split.kind='none', engine.strategy='local', train.epoch=300";
  ASSERT_EQ(AskEmbedded("SET sluice.async = on; " + TrainText("m", here)).exit_code, 0);
  ASSERT_TRUE(HasBegun(1));
  Signal(ProcessOf(1), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return ProcessOf(1) == 0 || !Lives(ProcessOf(1)); }));
  const ShellOutcome waited = AskEmbedded("WAIT JOB 1");
  EXPECT_EQ(waited.exit_code, 0) << waited.output;
  EXPECT_THAT(waited.output, HasSubstr("\nm,1,1,DNNClassifier," + std::to_string(kRows) + ","));
}

}  // namespace
}  // namespace sluice::executor
