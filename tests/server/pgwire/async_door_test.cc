#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <string>

#include "tests/server/pgwire/door_fixture.h"

// Batches of jobs through the PostgreSQL door, with the real psql: they stop at a failure, outlive
// their client, and can be attached to again.
namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AsyncDoorTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    ASSERT_EQ(Direct("INSERT INTO points SELECT i, i % 2 FROM generate_series(301, 20000) AS i")
                  .exit_code,
              0);
    Start();
  }

  std::string PsqlCommand(const std::string& options) const {
    return fmt::format("psql -XAt -P pager=off '{}' {}", Conninfo(), options);
  }
  // Runs `script` as a file.
  ShellOutcome PsqlFile(const std::string& script, const std::string& options = "") const {
    std::ofstream(home_ + "/script.sql") << script;
    return RunInShell(PsqlCommand(fmt::format("{} -f {}/script.sql 2>&1", options, home_)));
  }
  static std::string Train(const std::string& model, int epochs) {
    return fmt::format(
        "SELECT x, y FROM points TO TRAIN DNNClassifier WITH "
        "model.hidden_units=[8], train.epoch={}, split.kind='none' LABEL y INTO {}",
        epochs, model);
  }
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

TEST_F(AsyncDoorTest, ExplainSaysWhereAJobWillLive) {
  const std::string explain = "EXPLAIN " + Train("m", 2);
  const std::string here = "Job: in the gateway's process; it ends with its client or the gateway";
  EXPECT_THAT(PsqlFile(explain + ";").output, HasSubstr(here));
  EXPECT_THAT(
      PsqlFile("SET sluice.async = on; " + explain + ";").output,
      HasSubstr("Job: in a process of its own; it outlives the gateway and its client, which "
                "is answered at once (sluice.async)"));
  EXPECT_THAT(PsqlFile("SET sluice.on_disconnect = detach; " + explain + ";").output,
              HasSubstr("Job: in a process of its own; it outlives the gateway and its client "
                        "(sluice.on_disconnect)"));
  EXPECT_THAT(
      PsqlFile("SET sluice.on_disconnect = detach;\nCREATE TEMP TABLE mine AS SELECT * FROM "
               "points;\nEXPLAIN SELECT * FROM mine TO TRAIN xgboost.gbtree LABEL y INTO m;")
          .output,
      HasSubstr("Job: in the process of this session, as it cannot have a process of its "
                "own: only its own session can read what the statement reads: it reads "
                "the temporary table mine"));
  EXPECT_THAT(PsqlFile("EXPLAIN SELECT x, y FROM points TO TRAIN DNNClassifier WITH "
                       "engine.num_workers=2 LABEL y INTO m;")
                  .output,
              HasSubstr("Job: in a process of its own; it outlives the gateway, and ends with its "
                        "client"));
}

TEST_F(AsyncDoorTest, WhatAJobsProcessLogsIsKept) {
  gateway_.reset();
  Start("--auth trust --log-level debug");
  ASSERT_EQ(PsqlFile("SELECT x, y FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y"
                     " INTO first;")
                .exit_code,
            0);
  // The job's process hears a notice of the server whenever it writes an event.
  ASSERT_EQ(Direct("CREATE FUNCTION notice() RETURNS trigger LANGUAGE plpgsql AS"
                   " 'BEGIN RAISE NOTICE ''written''; RETURN NULL; END';"
                   "CREATE TRIGGER noticed AFTER INSERT ON sluice.job_events"
                   " EXECUTE FUNCTION notice()")
                .exit_code,
            0);
  const ShellOutcome ran =
      PsqlFile("SET sluice.async = on;\n" + Train("m", 1) + " \\gset\nWAIT JOB :job;\n");
  EXPECT_EQ(ran.exit_code, 0) << ran.output;
  ASSERT_TRUE(Becomes("SELECT count(*) FROM sluice.job_events WHERE kind = 'log_kept'", "1"));
  const std::string shown = PsqlFile("SHOW JOB 2;").output;
  const size_t begin = shown.find('/', shown.find("log_kept"));
  ASSERT_NE(begin, std::string::npos) << shown;
  const std::string path = shown.substr(begin, shown.find(" on ", begin) - begin);
  EXPECT_THAT(path, HasSubstr(fmt::format("/sluice-{}/job-", geteuid())));
  EXPECT_THAT(RunInShell("cat " + path).output, HasSubstr("process=job "));
  EXPECT_EQ(RunInShell("stat -c %a " + path).output, "600\n");
  std::remove(path.c_str());
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
  // No job can be begun inside a transaction.
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
  // Runs until it is interrupted.
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
  // Ctrl-C cancels, whatever is set for clients that disconnect.
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

// A job's processes inherit nothing from the gateway: neither its listening sockets, nor its
// clients.
TEST_F(DoorTest, TheNextGatewayListensWhereAKilledOneDid) {
  Start("--auth trust");
  const std::string started =
      Psql(
          "SET sluice.async = on;\nSELECT p.* FROM points p, generate_series(1, 40) TO TRAIN"
          " DNNClassifier WITH engine.num_workers=2, engine.num_ps=1, train.batch_size=16,"
          " train.epoch=12 LABEL y INTO m;",
          "-At")
          .output;
  ASSERT_THAT(started, HasSubstr("|RUNNING|"));
  const std::string address = "127.0.0.1:" + port_;
  gateway_.reset();  // SIGKILL
  Start("--auth trust", "", address);
  EXPECT_THAT(Psql("WAIT JOB 1;", "-At").output, HasSubstr("m|1|1|"));
}

}  // namespace
}  // namespace sluice
