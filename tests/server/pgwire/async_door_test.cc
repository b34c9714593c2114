#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "tests/server/sluice_process.h"
#include "tests/support/postgres_server.h"

// Batches of jobs through the PostgreSQL door, by the real psql: they stop where they fail, outlive
// their client, and are attached to again.
namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AsyncDoorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    std::filesystem::create_directories(home_);
    ASSERT_EQ(Direct("CREATE TABLE points AS SELECT i::float8 AS x, i % 2 AS y"
                     " FROM generate_series(1, 20000) AS i")
                  .exit_code,
              0);
    gateway_ = std::make_unique<BackgroundProcess>(fmt::format(
        "HOME={} exec {} serve --source '{}' --grpc 127.0.0.1:0 --pg 127.0.0.1:0 --auth trust",
        home_, SLUICE_BINARY, database_.url()));
    gateway_->ReadLine();
    const std::string line = gateway_->ReadLine();  // PostgreSQL on 127.0.0.1:1234, ...
    const size_t colon = line.find(':');
    ASSERT_NE(colon, std::string::npos) << line;
    port_ = std::to_string(std::stoi(line.substr(colon + 1)));
  }
  void TearDown() override { std::filesystem::remove_all(home_); }

  std::string PsqlCommand(const std::string& options) const {
    return fmt::format("psql -XAt -P pager=off 'host=127.0.0.1 port={} user=postgres dbname={}' {}",
                       port_, database_.url().substr(database_.url().rfind('/') + 1), options);
  }
  // `script` as a file.
  ShellOutcome PsqlFile(const std::string& script, const std::string& options = "") const {
    std::ofstream(home_ + "/script.sql") << script;
    return RunInShell(PsqlCommand(fmt::format("{} -f {}/script.sql 2>&1", options, home_)));
  }
  ShellOutcome Direct(const std::string& sql) const {
    return RunInShell(fmt::format("psql -XAtq '{}' -c \"{}\" 2>&1", database_.url(), sql));
  }
  bool Becomes(const std::string& sql, const std::string& answer) const {
    for (int i = 0; i < 300; ++i) {
      if (Direct(sql).output == answer + "\n") {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }
  static std::string Train(const std::string& model, int epochs) {
    return fmt::format(
        "SELECT x, y FROM points TO TRAIN DNNClassifier WITH "
        "model.hidden_units=[8], train.epoch={}, split.kind='none' LABEL y INTO {}",
        epochs, model);
  }

  testing::PostgresTestDatabase database_;
  const std::string home_ =
      (std::filesystem::temp_directory_path() / fmt::format("sluice_async_door_{}", getpid()))
          .string();
  std::unique_ptr<BackgroundProcess> gateway_;
  std::string port_;
};

TEST_F(AsyncDoorTest, ABatchOfJobsIsBegunAndWaitedFor) {
  const ShellOutcome ran =
      PsqlFile("SET sluice.async = on;\n" + Train("m", 2) + " \\gset first_\n" + Train("n", 2) +
                   " \\gset second_\n\\echo :first_state :second_job\nWAIT JOB :first_job;\n"
                   "WAIT JOB :second_job;\n",
               "-v ON_ERROR_STOP=1");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("RUNNING 2\n"));
  EXPECT_THAT(ran.output, HasSubstr("\nm|1|1|DNNClassifier|20000|2|"));
  EXPECT_THAT(ran.output, HasSubstr("\nn|1|2|DNNClassifier|20000|2|"));
}

TEST_F(AsyncDoorTest, StopsAtTheStatementThatFails) {
  const std::string fails = "SELECT x, y FROM points WHERE x < 0 TO EVALUATE m INTO judged";
  const ShellOutcome stopped = PsqlFile(Train("m", 1) + ";\nSET sluice.async = on;\n" + fails +
                                            " \\gset\n\\echo begun\nWAIT JOB :job;\n\\echo never\n",
                                        "-v ON_ERROR_STOP=1 -v VERBOSITY=verbose");
  EXPECT_EQ(stopped.exit_code, 3) << stopped.output;
  EXPECT_THAT(stopped.output, HasSubstr("begun"));
  EXPECT_THAT(stopped.output, HasSubstr("ERROR:  02000: job 2 failed"));
  EXPECT_THAT(stopped.output, Not(HasSubstr("never")));
  // Inside one transaction no job can be begun.
  const ShellOutcome single =
      PsqlFile("SET sluice.async = on;\n" + Train("m", 1) + ";\n\\echo never\n",
               "-1 -v ON_ERROR_STOP=1 -v VERBOSITY=verbose");
  EXPECT_EQ(single.exit_code, 3) << single.output;
  EXPECT_THAT(single.output, HasSubstr("ERROR:  25001: sluice.async is on"));
  EXPECT_THAT(single.output, Not(HasSubstr("never")));
  const ShellOutcome temporary = PsqlFile(
      "CREATE TEMP TABLE p AS SELECT * FROM points;\nSET sluice.async = on;\n"
      "SELECT x, y FROM p TO TRAIN LinearClassifier LABEL y INTO m;\n",
      "-v ON_ERROR_STOP=1 -v VERBOSITY=verbose");
  EXPECT_EQ(temporary.exit_code, 3) << temporary.output;
  EXPECT_THAT(temporary.output, HasSubstr("ERROR:  0A000"));
  EXPECT_THAT(temporary.output, HasSubstr("temporary table p"));
}

TEST_F(AsyncDoorTest, PsqlsOwnWaysToRunStatements) {
  const ShellOutcome ran = PsqlFile("SELECT replace($q$" + Train("@", 1) +
                                        "$q$, '@', name) FROM (VALUES ('a'), ('b')) AS v(name)"
                                        " \\gexec\n\\o " +
                                        home_ + "/out\n" + Train("c", 1) + ";\n\\o\n",
                                    "-v ON_ERROR_STOP=1");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("b|1|2|DNNClassifier|"));
  EXPECT_THAT(ran.output, Not(HasSubstr("c|1|3|")));
  EXPECT_THAT(RunInShell("cat " + home_ + "/out").output, HasSubstr("c|1|3|DNNClassifier|"));
  // Until it is interrupted.
  std::ofstream(home_ + "/watch.sql") << "SHOW JOBS \\watch 0.1\n";
  const ShellOutcome watched =
      RunInShell("timeout -s INT 3 " + PsqlCommand("-f " + home_ + "/watch.sql 2>&1"));
  const std::string row = "3|SUCCEEDED|train|c|";
  EXPECT_THAT(watched.output, HasSubstr(row));
  EXPECT_NE(watched.output.find(row), watched.output.rfind(row)) << watched.output;
}

TEST_F(AsyncDoorTest, AClientThatGoesLeavesItsJobOrTakesItAlong) {
  BackgroundProcess detaching(
      "exec " +
      PsqlCommand("-c \"SET sluice.on_disconnect = detach\" -c \"" + Train("m", 60) + "\""));
  ASSERT_TRUE(
      Becomes("SELECT count(*) > 0 FROM sluice.job_events WHERE job_id = 1 AND"
              " kind = 'epoch_done'",
              "t"));
  kill(detaching.pid(), SIGKILL);
  BackgroundProcess cancelling("exec " + PsqlCommand("-c \"" + Train("n", 100'000) + "\""));
  ASSERT_TRUE(
      Becomes("SELECT count(*) > 0 FROM sluice.job_events WHERE job_id = 2 AND"
              " kind = 'epoch_done'",
              "t"));
  kill(cancelling.pid(), SIGKILL);
  EXPECT_TRUE(Becomes("SELECT state FROM sluice.jobs WHERE id = 2", "CANCELLED"));
  const ShellOutcome waited = RunInShell(PsqlCommand("-c 'WAIT JOB 1' 2>&1"));
  EXPECT_EQ(waited.exit_code, 0);
  EXPECT_THAT(waited.output, HasSubstr("m|1|1|DNNClassifier|20000|60|"));
  // Ctrl-C cancels, whatever becomes of clients that go.
  BackgroundProcess interrupted("exec " + PsqlCommand("-c \"SET sluice.on_disconnect = detach\""
                                                      " -c \"" +
                                                      Train("n", 100'000) + "\""));
  ASSERT_TRUE(
      Becomes("SELECT count(*) > 0 FROM sluice.job_events WHERE job_id = 3 AND"
              " kind = 'epoch_done'",
              "t"));
  kill(interrupted.pid(), SIGINT);
  EXPECT_TRUE(Becomes("SELECT state FROM sluice.jobs WHERE id = 3", "CANCELLED"));
}

TEST_F(AsyncDoorTest, WhatCannotGoOnSaysSoBeforehand) {
  const ShellOutcome told = PsqlFile(
      "CREATE TEMP TABLE p AS SELECT * FROM points;\n"
      "SET sluice.on_disconnect = detach;\n"
      "SELECT x, y FROM p TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO m;\n");
  EXPECT_EQ(told.exit_code, 0) << told.output;
  EXPECT_THAT(told.output, HasSubstr("the statement is cancelled if its client goes away: "));
  const ShellOutcome goes_on =
      PsqlFile("SET sluice.on_disconnect = detach;\n" + Train("m", 1) + ";\n");
  EXPECT_THAT(goes_on.output, HasSubstr("job 2 goes on if this client goes away: WAIT JOB 2"));
  EXPECT_THAT(goes_on.output, HasSubstr("m|2|2|DNNClassifier|20000|1|"));
}

}  // namespace
}  // namespace sluice
