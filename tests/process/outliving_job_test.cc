#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/process/outliving_job.h"
#include "tests/support/postgres_server.h"

namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(OutlivingJobs, AnswerAtOnceAndAreAttachedTo) {
  StartGateway();
  const ShellOutcome begun = Ask("SET sluice.async = on; " + Long("m", Fleet()));
  EXPECT_EQ(begun.exit_code, 0) << begun.output;
  EXPECT_THAT(begun.output, HasSubstr("job,state,hint\n1,RUNNING,WAIT JOB 1\n"));
  ExpectWhole(1, "m");
  // The row is kept.
  ExpectWhole(1, "m");
}

// As `ps` shows it, and /proc/PID/comm.
struct Shown {
  std::string title, role, comm;
};
Shown ShownAs(const std::string& pid) {
  Shown shown;
  std::ifstream arguments("/proc/" + pid + "/cmdline", std::ios::binary);
  std::getline(arguments, shown.title, '\0');
  std::getline(arguments, shown.role, '\0');
  std::ifstream("/proc/" + pid + "/comm") >> shown.comm;
  return shown;
}

TEST_F(OutlivingJobs, HaveProcessesThatAreCalledWhatTheyAre) {
  StartGateway();
  ASSERT_EQ(Ask("SET sluice.async = on; " +
                Long("m", "engine.num_workers=2, engine.num_ps=2", 3 * kEpochs))
                .exit_code,
            0);
  ASSERT_TRUE(HasBegun(1));
  std::map<std::string, std::string> processes;  // their numbers
  std::istringstream lines(Ask("SHOW JOB 1").output);
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view kProcess = "process,";
    if (line.starts_with(kProcess)) {
      const size_t comma = line.rfind(',');
      processes[line.substr(kProcess.size(), comma - kProcess.size())] = line.substr(comma + 1);
    }
  }
  EXPECT_EQ(processes["job 1"], std::to_string(ProcessOf(1)));
  for (const char* name :
       {"job 1", "job 1 master", "job 1 worker 1", "job 1 worker 2", "job 1 ps 0", "job 1 ps 1"}) {
    const Shown shown = ShownAs(processes[name]);
    EXPECT_EQ(shown.title, std::string("sluice: ") + name);
    EXPECT_EQ(shown.comm, "sluice") << name;
    EXPECT_THAT(std::string(name), ::testing::StartsWith("job 1"));
  }
  EXPECT_EQ(processes.size(), 6U);
  EXPECT_EQ(ShownAs(processes["job 1 worker 2"]).role, "worker");
  ASSERT_EQ(Ask("CANCEL JOB 1").exit_code, 0);
  EXPECT_TRUE(Eventually([&] { return !StillRuns(1); }));
  EXPECT_THAT(Ask("SHOW JOB 1").output, Not(HasSubstr("\nprocess,")));
}

TEST_F(OutlivingJobs, AKilledGatewayCostsNoJob) {
  constexpr int kLonger = 3 * kEpochs;  // the next gateway finds the job at work
  StartGateway();
  ASSERT_EQ(Ask("SET sluice.async = on; " + Long("m", Fleet(), kLonger)).exit_code, 0);
  ASSERT_TRUE(HasBegun(1));
  const pid_t process = ProcessOf(1);
  ASSERT_GT(process, 0);
  kill(gateway_->pid(), SIGKILL);
  gateway_.reset();
  EXPECT_TRUE(Lives(process));
  StartGateway();
  EXPECT_THAT(Ask("SHOW JOBS").output, HasSubstr("1,RUNNING,train,m,"));
  ExpectWhole(1, "m", kLonger);
  EXPECT_EQ(Count(1, "master_lost"), 0);
  EXPECT_EQ(Count(1, "worker_lost"), 0);
  EXPECT_TRUE(Eventually([&] { return !Lives(process); }));
}

TEST_F(OutlivingJobs, AKilledGatewayCostsNoJobOfProcessesThatIsWaitedFor) {
  constexpr int kLonger = 3 * kEpochs;  // the next gateway finds the job at work
  StartGateway();
  BackgroundProcess client("exec " + Client(Long("m", Fleet(), kLonger)));
  ASSERT_TRUE(HasBegun(1));
  kill(gateway_->pid(), SIGKILL);
  StartGateway();
  EXPECT_TRUE(StillRuns(1));
  ExpectWhole(1, "m", kLonger);
}

TEST_F(OutlivingJobs, TheNextGatewayCountsTheirSlotsAndCancelsThem) {
  constexpr int kLonger = 2 * kEpochs;  // the second one waits for the first one's end
  StartGateway("--slots 2");
  const std::string two = "engine.num_workers=2, engine.min_workers=2, engine.max_workers=2";
  ASSERT_EQ(Ask("SET sluice.async = on; " + Long("m", two, kLonger)).exit_code, 0);
  ASSERT_TRUE(HasBegun(1));
  kill(gateway_->pid(), SIGKILL);
  StartGateway("--slots 2");
  // It returns within a moment; until then the next gateway does not know of it.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ASSERT_EQ(Ask("SET sluice.async = on; " + Long("n", two, 20 * kEpochs)).exit_code, 0);
  ExpectWhole(1, "m", kLonger);
  ASSERT_TRUE(Eventually([&] { return Count(2, "worker_started") == 2; }));
  int64_t last_of_first = 0;
  const std::vector<catalog::JobEvent> first = catalog_->jobs().Events(1).value();
  for (const catalog::JobEvent& event : first) {
    last_of_first = event.kind == "epoch_done" ? event.micros : last_of_first;
  }
  const std::vector<catalog::JobEvent> second = catalog_->jobs().Events(2).value();
  for (const catalog::JobEvent& event : second) {
    if (event.kind == "worker_started") {
      EXPECT_GE(event.micros, last_of_first) << "two slots, and the first job had both";
    }
  }
  ASSERT_EQ(Ask("CANCEL JOB 2").exit_code, 0);
  const ShellOutcome waited = Ask("WAIT JOB 2");
  EXPECT_NE(waited.exit_code, 0);
  EXPECT_THAT(waited.output, HasSubstr("57014: job 2 was cancelled"));
}

TEST_F(OutlivingJobs, AClientThatGoesLeavesItsJobOrTakesItAlong) {
  StartGateway();
  const std::string endless = TrainText("n", "train.epoch=100000");
  constexpr int kLonger = 2 * kEpochs;
  BackgroundProcess detaching("exec " + Client("SET sluice.on_disconnect = detach; " +
                                               Long("m", "engine.strategy='local'", kLonger)));
  ASSERT_TRUE(HasBegun(1));
  kill(detaching.pid(), SIGKILL);
  BackgroundProcess cancelling("exec " + Client("SET sluice.on_disconnect = cancel; " + endless));
  ASSERT_TRUE(HasBegun(2));
  kill(cancelling.pid(), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return StateOf(2) == catalog::JobState::kCancelled; }));
  // Also a job with several processes.
  BackgroundProcess many("exec " + Client(TrainText("o", "train.epoch=100000, " + Fleet())));
  ASSERT_TRUE(HasBegun(3));
  kill(many.pid(), SIGKILL);
  EXPECT_TRUE(Eventually([&] { return StateOf(3) == catalog::JobState::kCancelled; }));
  ExpectWhole(1, "m", kLonger);
}

// Interrupting is not disconnecting.
TEST_F(OutlivingJobs, CtrlCEndsAJobThatWouldOutliveItsClient) {
  StartGateway();
  BackgroundProcess client("exec " + Client("SET sluice.on_disconnect = detach; " +
                                            TrainText("m", "train.epoch=100000")));
  ASSERT_TRUE(HasBegun(1));
  kill(client.pid(), SIGINT);
  EXPECT_TRUE(Eventually([&] { return StateOf(1) == catalog::JobState::kCancelled; }));
}

TEST_F(OutlivingJobs, AGatewayThatIsStoppedEndsOnlyWhatIsWaitedFor) {
  StartGateway();
  BackgroundProcess waiting("exec " + Client(TrainText("n", "train.epoch=100000, " + Fleet())));
  ASSERT_TRUE(HasBegun(1));
  constexpr int kLong = 6 * kEpochs;
  ASSERT_EQ(Ask("SET sluice.async = on; " + Long("m", Fleet(), kLong)).exit_code, 0);
  ASSERT_TRUE(HasBegun(2));
  kill(gateway_->pid(), SIGTERM);
  EXPECT_TRUE(Eventually([&] { return StateOf(1) == catalog::JobState::kCancelled; }));
  EXPECT_TRUE(StillRuns(2));
  StartGateway();
  ExpectWhole(2, "m", kLong);
}

TEST_F(OutlivingJobs, PredictionsAndEvaluationsAreJobsToo) {
  StartGateway();
  ASSERT_EQ(Ask(TrainText("m", "train.epoch=1")).exit_code, 0);
  EXPECT_THAT(
      Ask("SET sluice.async = on; SELECT a, b, i FROM points TO PREDICT scored.p USING m").output,
      HasSubstr("2,RUNNING,WAIT JOB 2"));
  EXPECT_THAT(Ask("WAIT JOB 2").output, HasSubstr("\nscored,m,1," + std::to_string(kRows) + ","));
  EXPECT_EQ(ClusterJobs::Ask("SELECT count(*) FROM scored"), kRows);
  EXPECT_THAT(
      Ask("SET sluice.async = on; SELECT a, b, y FROM points TO EVALUATE m INTO judged").output,
      HasSubstr("3,RUNNING,WAIT JOB 3"));
  EXPECT_THAT(Ask("WAIT JOB 3").output, HasSubstr("auc"));
  EXPECT_EQ(ClusterJobs::Ask("SELECT count(*) FROM judged"), 1);
  // A statement whose rows go only to the client is waited for.
  EXPECT_THAT(Ask("SET sluice.async = on; SELECT a, b, y FROM points TO EVALUATE m").output,
              HasSubstr("auc"));
}

TEST_F(OutlivingJobs, ErrorsOfJobsAreTheStatementsOwn) {
  StartGateway();
  // An error before there is a job.
  const ShellOutcome wrong =
      Ask("SET sluice.async = on; SELECT a, nope FROM points LABEL y INTO m");
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_THAT(wrong.output, HasSubstr("42703"));
  EXPECT_TRUE(catalog_->jobs().List()->empty());
  // An error afterwards.
  ASSERT_EQ(Ask(TrainText("m", "train.epoch=1")).exit_code, 0);
  ASSERT_EQ(Ask("SET sluice.async = on; SELECT a, b, y FROM points WHERE i < 0 TO EVALUATE m INTO "
                "judged")
                .exit_code,
            0);
  const ShellOutcome failed = Ask("WAIT JOB 2");
  EXPECT_NE(failed.exit_code, 0);
  EXPECT_THAT(failed.output, HasSubstr("02000: job 2 failed: no rows to evaluate"));
  const ShellOutcome inside =
      Ask("BEGIN; SET sluice.async = on; " + TrainText("m", "train.epoch=1"));
  EXPECT_THAT(inside.output, HasSubstr("25001"));
}

TEST_F(OutlivingJobs, HaveALimit) {
  StartGateway("--slots 8 --max-statements 2");
  const std::string endless =
      "SET sluice.async = on; " + TrainText("m", "train.epoch=100000, engine.strategy='local'");
  ASSERT_EQ(Ask(endless).exit_code, 0);
  ASSERT_EQ(Ask(endless).exit_code, 0);
  EXPECT_THAT(Ask(endless).output, HasSubstr("53300: 2 jobs run already"));
  ASSERT_EQ(Ask("CANCEL JOB 1; CANCEL JOB 2").exit_code, 0);
  EXPECT_TRUE(Eventually([&] { return StateOf(2) == catalog::JobState::kCancelled; }));
}

TEST_F(OutlivingJobs, AShellsJobOutlivesTheShell) {
  const ShellOutcome begun = AskEmbedded("SET sluice.async = on; " + Long("m", Fleet()));
  EXPECT_THAT(begun.output, HasSubstr("1,RUNNING,WAIT JOB 1"));
  const ShellOutcome waited = AskEmbedded("WAIT JOB 1");
  EXPECT_EQ(waited.exit_code, 0) << waited.output;
  EXPECT_THAT(waited.output, HasSubstr("\nm,1,1,DNNClassifier," + std::to_string(kRows) + ","));
  // A script, and the script that attaches to its job.
  const std::string script = (folder_ / "script.sql").string();
  std::ofstream(script) << "SET sluice.async = on;\n"
                        << Long("n", "engine.strategy='local'") << ";\nSELECT nope;\n"
                        << TrainText("o", "train.epoch=1") << ";\n";
  const ShellOutcome stopped = RunInShell(std::string(SLUICE_BINARY) + " sql --source " + Url() +
                                          " --format csv -f " + script + " 2>&1");
  EXPECT_EQ(stopped.exit_code, 1) << stopped.output;
  EXPECT_THAT(stopped.output, HasSubstr("2,RUNNING,WAIT JOB 2"));
  EXPECT_THAT(stopped.output, Not(HasSubstr("3,RUNNING")));
  EXPECT_EQ(AskEmbedded("WAIT JOB 2").exit_code, 0);
}

class OutlivingJobsPostgres : public OutlivingJobs {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    UsePostgres(database_.url());
  }
  testing::PostgresTestDatabase database_;
};

TEST_F(OutlivingJobsPostgres, AKilledGatewayCostsNoJob) {
  constexpr int kLonger = 3 * kEpochs;  // the next gateway finds the job at work
  StartGateway();
  ASSERT_EQ(Ask("SET sluice.async = on; " + Long("m", Fleet(), kLonger)).exit_code, 0);
  ASSERT_TRUE(HasBegun(1));
  kill(gateway_->pid(), SIGKILL);
  StartGateway();
  EXPECT_TRUE(StillRuns(1));
  ExpectWhole(1, "m", kLonger);
}

TEST_F(OutlivingJobsPostgres, ReadsAsTheSessionDoes) {
  for (const char* sql : {"CREATE SCHEMA theirs",
                          "CREATE TABLE theirs.points AS SELECT * FROM points WHERE i <= 1000"}) {
    ASSERT_TRUE(source_->Execute(sql, nullptr, {}).ok());
  }
  StartGateway();
  const ShellOutcome begun = Ask("SET search_path = theirs; SET sluice.async = on; " +
                                 TrainText("m", "split.kind='none', train.epoch=1"));
  EXPECT_THAT(begun.output, HasSubstr("1,RUNNING"));
  EXPECT_THAT(Ask("WAIT JOB 1").output, HasSubstr(",DNNClassifier,1000,1,"));
}

}  // namespace
}  // namespace sluice::executor
