#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>

#include "tests/process/cluster_job.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LockedDatabase : public ClusterJobs {};

TEST_F(LockedDatabase, ATrainingIsNotThrownAwayForALock) {
  for (const char* strategy :
       {"train.epoch=20, engine.strategy='local'",
        "train.epoch=3, engine.num_workers=2, engine.num_ps=1, engine.sync=true"}) {
    LocalCluster cluster(Machine(8));
    const auto holder = Open();
    RecordingSink sink;
    bool locked = false, unlocked = false;
    sink.on_progress = [&] {
      locked = locked || holder->Execute("BEGIN IMMEDIATE", nullptr, {}).ok();
    };
    sink.on_notice = [&](const std::string& notice) {
      if (locked && !unlocked && notice.find("locked") != std::string::npos) {
        unlocked = holder->Execute("COMMIT", nullptr, {}).ok();
      }
    };
    const Status status = Run(TrainText("m", strategy), cluster, *Open(), sink);
    ASSERT_TRUE(status.ok()) << strategy << ": " << status.ToString();
    EXPECT_TRUE(unlocked) << strategy;
    EXPECT_EQ(catalog_->jobs().List()->front().state, catalog::JobState::kSucceeded);
  }
  EXPECT_EQ(catalog_->models().Versions("", "m")->size(), 2U);
}

TEST_F(LockedDatabase, WhoWaitsForTheLockCanBeCancelled) {
  LocalCluster cluster(Machine(8));
  const auto holder = Open();
  std::stop_source stop;
  RecordingSink sink;
  bool locked = false;
  sink.on_progress = [&] {
    locked = locked || holder->Execute("BEGIN IMMEDIATE", nullptr, {}).ok();
    stop.request_stop();
  };
  const Status status = Run(TrainText("m", "train.epoch=20, engine.strategy='local'"), cluster,
                            *Open(), sink, stop.get_token());
  EXPECT_TRUE(locked);
  EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kRunning);
  ASSERT_TRUE(holder->Execute("COMMIT", nullptr, {}).ok());
  EXPECT_TRUE(Eventually([&] {
    return catalog_->jobs().Find(1)->state == catalog::JobState::kCancelled;
  })) << "it is closed as soon as the database can be written";
}

// Its master notices, and can still report it.
TEST_F(LockedDatabase, AKilledGatewayLeavesAFailedJobWithItsStep) {
  std::string binary = SLUICE_BINARY, command = "sql", source = "--source=" + Url();
  std::string sql = "--command=" + TrainText("m",
                                             "train.epoch=2000, train.save_checkpoints_steps=10, "
                                             "engine.num_workers=2, engine.num_ps=1, "
                                             "engine.checkpoint_dir='" +
                                                 (folder_ / "checkpoints").string() + "'");
  char* arguments[] = {binary.data(), command.data(), source.data(), sql.data(), nullptr};
  pid_t gateway = 0;
  ASSERT_EQ(posix_spawn(&gateway, binary.c_str(), nullptr, nullptr, arguments, environ), 0);
  ASSERT_TRUE(Eventually([&] { return Count(1, "checkpoint_written") > 0; }));
  kill(gateway, SIGKILL);
  waitpid(gateway, nullptr, 0);
  ASSERT_TRUE(
      Eventually([&] { return catalog_->jobs().Find(1)->state != catalog::JobState::kRunning; }));
  const catalog::Job job = catalog_->jobs().Find(1).value();
  EXPECT_EQ(job.state, catalog::JobState::kFailed) << job.error;
  EXPECT_THAT(job.error, HasSubstr("it continues from step "));
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr(".stage-")));
  }
}

}  // namespace
}  // namespace sluice::executor
