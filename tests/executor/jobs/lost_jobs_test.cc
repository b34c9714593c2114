#include "executor/jobs/lost_jobs.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"

namespace sluice::executor {
namespace {

class LostJobs : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-lost-jobs-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    catalog::Database database = catalog::OpenDatabase("sqlite:" + folder_ + "/test.db").value();
    source_ = std::move(database.source);
    catalog_ = std::move(database.catalog);
  }
  void TearDown() override {
    source_.reset();
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }
  catalog::JobStore& jobs() { return catalog_->jobs(); }
  // What becomes of a running job with that runner.
  catalog::Job Judge(const catalog::JobRunner& runner, const std::string& kind = "train",
                     const std::string& checkpoint = "", const std::string& statement = "") {
    catalog::Job job;
    job.statement = statement;
    job.kind = kind;
    job.runner = runner;
    job.started_micros = WallMicros();
    job.id = jobs().Create(job).value();
    if (!checkpoint.empty()) {
      EXPECT_TRUE(
          jobs().AddEvents(job.id, {{WallMicros(), "checkpoint_written", checkpoint}}).ok());
    }
    EXPECT_TRUE(MarkLostJobs(jobs()).ok());
    job = jobs().Find(job.id).value();
    if (!catalog::HasEnded(job.state)) {
      catalog::Job over = job;  // so that the next one is judged alone
      over.state = catalog::JobState::kCancelled;
      EXPECT_TRUE(jobs().End(over).ok());
    }
    return job;
  }
  bool Lost(const catalog::JobRunner& runner) {
    return Judge(runner).state == catalog::JobState::kFailed;
  }

  std::string folder_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
};

TEST_F(LostJobs, ThoseOfAContainerThatEndsAreUnseen) {
  catalog::Job job;
  job.kind = "train";
  job.runner = ThisProcess();
  const int64_t here = jobs().Create(job).value();
  job.runner.place = "another container";
  const int64_t elsewhere = jobs().Create(job).value();
  ASSERT_TRUE(LeaveJobsOfThisPlace(jobs()).ok());
  for (const catalog::Job& one : jobs().Running().value()) {
    EXPECT_EQ(one.runner.seen_micros, one.id == here ? 0 : job.runner.seen_micros) << one.id;
    EXPECT_TRUE(one.id == here || one.id == elsewhere);
  }
}

TEST_F(LostJobs, ThoseOfThisMachineAreTheSystemsToKnow) {
  EXPECT_FALSE(Lost(ThisProcess()));
  catalog::JobRunner silent = ThisProcess();
  silent.seen_micros = 0;
  EXPECT_FALSE(Lost(silent)) << "it is there, whatever it says";
  catalog::JobRunner another = ThisProcess();
  ++another.started;
  EXPECT_TRUE(Lost(another)) << "the number is another process's now";
}

TEST_F(LostJobs, OneWhoseStatementIsKeptWaits) {
  catalog::Job job;
  job.kind = "train";
  job.runner = ThisProcess();
  ++job.runner.started;
  job.id = jobs().Create(job).value();
  ASSERT_TRUE(jobs().KeepRecord(job.id, kStatementRecord, "what it runs").ok());
  const auto waiting = FindWaitingJobs(jobs()).value();
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].job.id, job.id);
  EXPECT_EQ(waiting[0].statement, "what it runs");
  EXPECT_EQ(jobs().Find(job.id)->state, catalog::JobState::kRunning);
  // The limit of takeovers.
  const catalog::JobEvent taken_over{WallMicros(), kTakenOverEvent, ""};
  const catalog::JobEvent checkpoint{WallMicros(), "checkpoint_written", "step 3 in /c"};
  ASSERT_TRUE(jobs().AddEvents(job.id, {taken_over, taken_over, checkpoint, taken_over}).ok());
  EXPECT_EQ(FindWaitingJobs(jobs())->size(), 1U);
  ASSERT_TRUE(jobs().AddEvents(job.id, {taken_over, taken_over}).ok());
  EXPECT_TRUE(FindWaitingJobs(jobs())->empty());
  job = jobs().Find(job.id).value();
  EXPECT_EQ(job.state, catalog::JobState::kFailed);
  EXPECT_NE(job.error.find("4 processes were lost one after the other"), std::string::npos)
      << job.error;
  EXPECT_NE(job.error.find("run it again: it continues from step 3 in /c"), std::string::npos)
      << job.error;
}

TEST_F(LostJobs, OneThatIsCancelledMeanwhileIsOver) {
  catalog::Job job;
  job.kind = "train";
  job.runner = ThisProcess();
  ++job.runner.started;
  job.id = jobs().Create(job).value();
  ASSERT_TRUE(jobs().KeepRecord(job.id, kStatementRecord, "what it runs").ok());
  ASSERT_TRUE(jobs().RequestCancel(job.id).ok());
  EXPECT_TRUE(FindWaitingJobs(jobs())->empty());
  EXPECT_EQ(jobs().Find(job.id)->state, catalog::JobState::kCancelled);
}

TEST_F(LostJobs, AProcessThatHasEndedIsGoneBeforeItsParentSaysSo) {
  int to_child[2], from_child[2];
  ASSERT_EQ(pipe(to_child), 0);
  ASSERT_EQ(pipe(from_child), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    close(to_child[1]);
    const int64_t started = ThisProcess().started;
    bool told = write(from_child[1], &started, sizeof(started)) == sizeof(started);
    char byte = 0;
    told = told && read(to_child[0], &byte, 1) == 0;  // until the parent closes
    _exit(told ? 0 : 1);
  }
  catalog::JobRunner runner = ThisProcess();
  runner.pid = child;
  ASSERT_EQ(read(from_child[0], &runner.started, sizeof(runner.started)),
            static_cast<ssize_t>(sizeof(runner.started)));
  EXPECT_FALSE(Lost(runner));
  close(to_child[1]);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(Lost(runner)) << "nobody has waited for it yet";
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(Lost(runner));
  for (const int end : {to_child[0], from_child[0], from_child[1]}) {
    close(end);
  }
}

TEST_F(LostJobs, OthersHaveThreeMinutesToSaySomething) {
  constexpr int64_t kSecond = 1'000'000;
  catalog::JobRunner elsewhere = ThisProcess();
  elsewhere.place = "another machine";
  elsewhere.pid = 1;
  elsewhere.seen_micros = WallMicros() - 100 * kSecond;
  EXPECT_FALSE(Lost(elsewhere));
  elsewhere.seen_micros = WallMicros() - 200 * kSecond;
  EXPECT_TRUE(Lost(elsewhere));
}

TEST_F(LostJobs, AreToldWhatToDo) {
  catalog::JobRunner gone = ThisProcess();
  ++gone.started;
  EXPECT_NE(Judge(gone).error.find("with engine.checkpoint_dir it would continue"),
            std::string::npos);
  EXPECT_NE(Judge(gone, "train", "", "SELECT 1 TO TRAIN t WITH Engine.Checkpoint_Dir='/c' INTO m")
                .error.find("it continues from the newest checkpoint"),
            std::string::npos);
  EXPECT_EQ(Judge(gone, "predict").error.find("engine.checkpoint_dir"), std::string::npos);
  const std::string error =
      Judge(gone, "train", "step 1200 in /checkpoints/m (checkpoint-7, 91234 bytes)").error;
  EXPECT_NE(error.find("it continues from step 1200 in /checkpoints/m"), std::string::npos);
  EXPECT_EQ(error.find("91234"), std::string::npos);
}

}  // namespace
}  // namespace sluice::executor
