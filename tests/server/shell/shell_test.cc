#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <vector>

#include "tests/server/shell/shell_fixture.h"

// The binary itself, as started by a person or a script.
namespace sluice::server {
namespace {

namespace fs = std::filesystem;

TEST_F(ShellTest, RowsGoToStandardOutputTheRestToStandardError) {
  const Outcome outcome =
      Sql({"--format", "csv", "-c", "CREATE TABLE t(n INTEGER); INSERT INTO t VALUES (1), (2)",
           "-c", "SELECT * FROM t"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "n\n1\n2\n");
  EXPECT_NE(outcome.err.find("INSERT 0 2\n"), std::string::npos) << outcome.err;
}

TEST_F(ShellTest, TableIsTheDefaultFormat) {
  EXPECT_EQ(Sql({"-c", "SELECT 1 AS n, 'a' AS s"}).out, " n | s\n---+---\n 1 | a\n(1 row)\n\n");
  EXPECT_EQ(Sql({"--format", "json", "-c", "SELECT 1 AS n, NULL AS s"}).out,
            "{\"n\": 1, \"s\": null}\n");
}

TEST_F(ShellTest, TheFirstErrorEndsTheScriptWithExitCodeOne) {
  const Outcome outcome = Sql(
      {"--format", "csv", "-c", "SELECT 1 AS a;\nSELECT * FROM nowhere;", "-c", "SELECT 2 AS b"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "a\n1\n");
  EXPECT_NE(outcome.err.find("ERROR 42P01"), std::string::npos) << outcome.err;
}

TEST_F(ShellTest, ASelectThatFailsBeforeItsFirstRowShowsNoTable) {
  const Outcome outcome = Sql({"-c", "SELECT abs(-9223372036854775807 - 1) AS n"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_NE(outcome.err.find("integer overflow"), std::string::npos) << outcome.err;
}

TEST_F(ShellTest, WrongUsageIsExitCodeTwo) {
  EXPECT_EQ(Run({"sql", "-c", "SELECT 1"}).exit_code, 2);
  EXPECT_EQ(Run({"sql", "--sauce", "x"}).exit_code, 2);
  EXPECT_EQ(Run({}).exit_code, 2);
  EXPECT_EQ(Run({"--version"}).exit_code, 0);
  EXPECT_EQ(Run({"sql", "--help"}).exit_code, 0);
  EXPECT_EQ(Sql({"-f", "/nowhere/at/all.sql"}).exit_code, 2);
  EXPECT_EQ(Sql({"--format", "xml", "-c", "SELECT 1"}).exit_code, 2);
}

TEST_F(ShellTest, HelpNamesCommandsAndFlagsAsTheyAreTyped) {
  EXPECT_NE(Run({"--help"}).out.find("Usage: sluice [OPTIONS] SUBCOMMAND"), std::string::npos);
  for (const char* command :
       {"sql", "serve", "setup", "sample", "load", "train", "predict", "evaluate", "master"}) {
    const Outcome help = Run({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.out.find(std::string("Usage: sluice ") + command + " "), std::string::npos)
        << help.out;
    // "--flag{value}" is CLI11's declaration of a flag, "TEXT:{one,other}" its list of allowed
    // values.
    EXPECT_FALSE(std::regex_search(help.out, std::regex("--[a-z-]+\\{"))) << help.out;
  }
}

TEST_F(ShellTest, ASourceThatCannotBeOpenedIsExitCodeOne) {
  const Outcome outcome = Run({"sql", "--source", "database://in?imagination", "-c", ";"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("ERROR"), std::string::npos);
}

// J19, and a script of comments and empty statements.
TEST_F(ShellTest, ReadsScriptsFromStandardInputWithoutAFinalSemicolon) {
  const Outcome outcome = Sql({"--format", "csv"},
                              "-- 1. don't stop here;\n;; ;\nSELECT 'a;b' AS s;\n"
                              "/* ; */ SELECT 2 AS n\n");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "s\na;b\nn\n2\n");
  EXPECT_EQ(Sql({}, "-- nothing\n").exit_code, 0);
}

TEST_F(ShellTest, CommandsAndFilesRunInTheOrderInWhichTheyStand) {
  std::ofstream(folder_ / "two.sql") << "SELECT 2 AS n;";
  const Outcome outcome = Sql({"--format", "csv", "-c", "SELECT 1 AS n", "-f",
                               (folder_ / "two.sql").string(), "-c", "SELECT 3 AS n", "-f", "-"},
                              "SELECT 4 AS n");
  EXPECT_EQ(outcome.out, "n\n1\nn\n2\nn\n3\nn\n4\n");
}

TEST_F(ShellTest, ANulByteIsToldWithItsPlace) {
  const Outcome outcome = Sql({}, std::string("SELECT 1\0;", 10));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("LINE 1:9"), std::string::npos) << outcome.err;
}

TEST_F(ShellTest, CtrlCCancelsTheRunningStatement) {
  const pid_t child =
      Start({"sql", "--source", source_, "-c", "CREATE TABLE begun(n INTEGER);", "-c",
             "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1e12) "
             "SELECT count(*) FROM c;",
             "-c", "CREATE TABLE not_begun(n INTEGER);"});
  while (ReadAll(folder_ / "err").find("CREATE TABLE") == std::string::npos) {
    ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0) << ReadAll(folder_ / "err");
    usleep(10'000);
  }
  kill(child, SIGINT);
  const Outcome outcome = Wait(child);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("57014"), std::string::npos) << outcome.err;
  EXPECT_EQ(Sql({"--format", "csv", "-c",
                 "SELECT count(*) AS n FROM sqlite_master WHERE name = 'not_begun'"})
                .out,
            "n\n0\n");
}

// A reader that closes the pipe early is not an error; the shell exits with the status of a program
// ended by SIGPIPE, as psql does, and runs nothing after that.
TEST_F(ShellTest, AClosedPipeEndsItQuietly) {
  for (const std::string format : {"table", "csv", "json"}) {
    const std::string command =
        "( " SLUICE_BINARY " sql --source " + source_ + " --format " + format +
        " -c 'WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n FROM c'"
        " -c 'CREATE TABLE beyond(n INTEGER)' 2>" +
        (folder_ / "err").string() + "; echo $? >" + (folder_ / "exit").string() +
        " ) | head -n 1 >" + (folder_ / "out").string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(ReadAll(folder_ / "exit"), "141\n") << format;
    EXPECT_EQ(ReadAll(folder_ / "err"), "") << format;
    EXPECT_NE(ReadAll(folder_ / "out"), "") << format;
  }
  EXPECT_EQ(Sql({"-c", "SELECT * FROM beyond"}).exit_code, 1) << "the next script has run";
}

TEST_F(ShellTest, AFullDiskIsAnError) {
  for (const std::string& command : {"sql --source " + source_ + " -c 'SELECT 1 AS n'",
                                     "serve --print-config --source " + source_}) {
    const std::string line = SLUICE_BINARY " " + command + " >/dev/full 2>" +
                             (folder_ / "err").string() + "; echo $? >" +
                             (folder_ / "exit").string();
    EXPECT_EQ(std::system(line.c_str()), 0);
    EXPECT_EQ(ReadAll(folder_ / "exit"), "1\n") << command;
    EXPECT_NE(ReadAll(folder_ / "err").find("No space left on device"), std::string::npos)
        << ReadAll(folder_ / "err");
  }
}

// A statement still runs if its messages cannot be written.
TEST_F(ShellTest, AClosedStandardErrorIsNoReasonToStop) {
  const std::string line = SLUICE_BINARY " sql --source " + source_ +
                           " -c 'CREATE TABLE t(n INTEGER)' -c 'INSERT INTO t VALUES (7)' 2>&-";
  EXPECT_EQ(std::system(line.c_str()), 0);
  EXPECT_EQ(Sql({"--format", "csv", "-c", "SELECT n FROM t"}).out, "n\n7\n");
}

TEST_F(ShellTest, CommandLineFormsPrintAndRunTheirStatement) {
  const Outcome outcome = Run({"predict", "--source", source_, "--model", "m", "--prediction_data",
                               "t", "--output", "p.y"});
  EXPECT_EQ(outcome.exit_code, 1) << "there is no table t";
  EXPECT_NE(outcome.err.find("SELECT * FROM \"t\""), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("TO PREDICT p.y"), std::string::npos) << outcome.err;
  EXPECT_EQ(Run({"train", "--source", source_, "--label", "y"}).exit_code, 2);
}

TEST_F(ShellTest, AModelFileIsAModelDefinition) {
  ASSERT_EQ(Sql({"-c",
                 "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                 " WHERE i < 200) SELECT i * 0.3 AS a, i % 5 AS b, i * 0.37 + i % 5 AS y FROM n"})
                .exit_code,
            0);
  std::ofstream(folder_ / "sum.json") << R"({"class_name": "Sequential", "config": {"layers": [
    {"class_name": "Dense", "config": {"units": 1, "name": "out", "batch_input_shape": [null, 2]}}
  ]}})";
  for (const int version : {1, 2}) {  // the second training finds the type of the first
    const Outcome outcome = Run({"train", "--source", source_, "--model_def",
                                 (folder_ / "sum.json").string(), "--training_data", "t", "--label",
                                 "y", "--output", "m", "--num_epochs", "2", "--format", "json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("\"version\": " + std::to_string(version)), std::string::npos)
        << outcome.out;
  }
  EXPECT_NE(Run({"train", "--source", source_, "--model_def", "none.json", "--training_data", "t",
                 "--label", "y", "--output", "m"})
                .err.find("none.json"),
            std::string::npos);
}

TEST_F(ShellTest, AFolderOfModelsHasModelDefinitions) {
  ASSERT_EQ(Sql({"-c", "CREATE TABLE t AS SELECT 1 AS x, 0 AS y UNION ALL SELECT 2, 1"}).exit_code,
            0);
  const auto train = [&](const std::string& definition) {
    return Run({"train", "--source", source_, "--model_zoo", folder_.string(), "--model_def",
                definition, "--training_data", "t", "--label", "y", "--output", "m", "--num_epochs",
                "1"});
  };
  std::ofstream(folder_ / "line.json") << R"({"class_name": "Sequential", "config": {"layers": [
    {"class_name": "Dense", "config": {"units": 1, "name": "out", "batch_input_shape": [null, 1]}}
  ]}})";
  const Outcome file = train("line.json");
  EXPECT_EQ(file.exit_code, 0) << file.err;
  EXPECT_NE(file.err.find("TO TRAIN line"), std::string::npos) << file.err;
  EXPECT_NE(train("DNNClassifier").err.find("names no model of the folder"), std::string::npos);
  EXPECT_NE(train("my_models.WideNet").err.find("my_models.py cannot be read"), std::string::npos);
  std::ofstream(folder_ / "my_models.py") << "class WideNet(: pass";
  const Outcome source = train("my_models.WideNet");  // with torch, or without
  EXPECT_NE(source.exit_code, 0) << source.out;
  EXPECT_EQ(source.err.find("cannot be read"), std::string::npos) << source.err;
}

TEST_F(ShellTest, SampleMakesATableOnce) {
  const std::vector<std::string> arguments = {"sample", "census", "--rows",  "100",
                                              "--into", source_,  "--table", "people"};
  const Outcome first = Run(arguments);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("100 rows in table people"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("AUC"), std::string::npos);
  const Outcome second = Run(arguments);
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find("--replace"), std::string::npos) << second.err;
  std::vector<std::string> replacing = arguments;
  replacing.push_back("--replace");
  EXPECT_EQ(Run(replacing).exit_code, 0);
  EXPECT_EQ(Sql({"--format", "csv", "-c", "SELECT count(*) AS n FROM people"}).out, "n\n100\n");
}

TEST_F(ShellTest, ExplainsHowManyWorkersWouldStart) {
  const std::string training =
      "SELECT x, y FROM t TO TRAIN LinearClassifier WITH engine.num_workers=1, "
      "engine.max_workers=1, engine.num_ps=1 LABEL y INTO m";
  ASSERT_EQ(Sql({"-c", "CREATE TABLE t AS SELECT 1 AS x, 0 AS y UNION ALL SELECT 2, 1"}).exit_code,
            0);
  const Outcome plan = Sql({"--format", "csv", "-c", "EXPLAIN " + training});
  EXPECT_NE(plan.out.find("\nStart: 1 worker at once\n"), std::string::npos) << plan.out;
  // One value, which has no such line.
  const Outcome json = Sql({"--format", "csv", "-c", "EXPLAIN (FORMAT JSON) " + training});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(json.out.find("Start:"), std::string::npos) << json.out;
}

TEST_F(ShellTest, ServesUntilItIsToldToStop) {
  const pid_t gateway = Start({"serve", "--source", source_, "--grpc", "127.0.0.1:0"});
  std::string ready;
  while (ready.find('\n') == std::string::npos) {
    ASSERT_EQ(waitpid(gateway, nullptr, WNOHANG), 0) << ReadAll(folder_ / "err");
    usleep(10'000);
    ready = ReadAll(folder_ / "out");
  }
  ASSERT_TRUE(ready.starts_with("gRPC on 127.0.0.1:")) << ready;
  const std::string address = ready.substr(8, ready.size() - 9);
  fs::rename(folder_ / "out", folder_ / "gateway_out");  // the client writes its own
  fs::rename(folder_ / "err", folder_ / "gateway_err");
  const Outcome outcome = Run({"sql", "--gateway", address, "--format", "csv", "-c",
                               "SET sluice.seed = 3", "-c", "SELECT 6 * 7 AS n"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "n\n42\n");
  EXPECT_EQ(Run({"sql", "--gateway", address, "-c", "SELECT * FROM nowhere"}).exit_code, 1);
  EXPECT_NE(Run({"sql", "--gateway", address, "--format", "csv", "-c", "SHOW CLUSTER"})
                .out.find("\nthis machine,ready,"),
            std::string::npos);
  // Its commands work there, too.
  const std::string file = (folder_ / "f.csv").string();
  std::ofstream(file) << "n,s\n1,it's\n2,\n";
  const std::string import = ".import " + file + " loaded\n";
  const Outcome commands = Run({"sql", "--gateway", address, "--format", "csv", "-c",
                                import + "SELECT * FROM loaded;\n\\d loaded\n\\dt"});
  EXPECT_EQ(commands.exit_code, 0) << commands.err;
  EXPECT_NE(commands.out.find("n,s\n1,it's\n2,\n"), std::string::npos) << commands.out;
  EXPECT_NE(commands.out.find("n,bigint"), std::string::npos) << commands.out;
  EXPECT_NE(commands.out.find("loaded,table"), std::string::npos) << commands.out;
  EXPECT_EQ(Run({"sql", "--gateway", address, "-c", import}).exit_code, 1) << "it is there";
  std::ofstream(file) << "n,s\n3,x\n4,y,z\n";
  EXPECT_EQ(
      Run({"sql", "--gateway", address, "-c", ".import --append " + file + " loaded"}).exit_code,
      1);
  EXPECT_EQ(Run({"sql", "--gateway", address, "--format", "csv", "-c",
                 "SELECT count(*) AS n FROM loaded"})
                .out,
            "n\n2\n");
  kill(gateway, SIGTERM);
  int status = 0;
  waitpid(gateway, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(Run({"sql", "--gateway", address, "-c", "SELECT 1"}).exit_code, 1) << "nobody is there";
}

TEST_F(TerminalTest, ReadsStatementsOverSeveralLinesAndGoesOnAfterErrors) {
  Open();
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type("SELECT 'one\n");
  ASSERT_TRUE(WaitFor("   ...> ")) << shown_;
  Type("; two' AS s;\n");
  ASSERT_TRUE(WaitFor("one\\n; two")) << shown_;
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type("SELECT * FROM nowhere;\n");
  ASSERT_TRUE(WaitFor("ERROR 42P01")) << shown_;
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type("exit\n");
  EXPECT_EQ(ExitCode(), 0);
  const std::string history = ReadAll(folder_ / ".sluice_history");
  EXPECT_NE(history.find("nowhere"), std::string::npos) << history;
}

TEST_F(TerminalTest, CtrlCClearsTheLineAndStopsStatements) {
  Open();
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type("SELECT half");
  Type("\x03");
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type("SELECT 40 + 2 AS whole;\n");
  ASSERT_TRUE(WaitFor("42")) << shown_;
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type(
      "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1e12) "
      "SELECT count(*) FROM c;\n");
  ASSERT_TRUE(WaitFor("FROM c;")) << shown_;
  usleep(300'000);  // so that it runs; if not yet, this is a Ctrl-C at the prompt
  Type("\x03");
  ASSERT_TRUE(WaitFor("57014")) << shown_;
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type("\x04");
  EXPECT_EQ(ExitCode(), 0);
}

TEST_F(TerminalTest, CtrlDEndsTheShell) {
  Open();
  ASSERT_TRUE(WaitFor("sluice> ")) << shown_;
  Type("\x04");
  EXPECT_EQ(ExitCode(), 0);
}

}  // namespace
}  // namespace sluice::server
