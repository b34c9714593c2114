// Where a password must not appear: the process list, other processes, output and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/server/sluice_process.h"

namespace sluice::server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Secrets : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "sluice_secrets_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
};

// Each form of the command line, while it runs.
TEST_F(Secrets, TheProcessListDoesNotShowThem) {
  const std::string url = "'postgresql://ann:s3cret@127.0.0.1:1/db?sslpassword=s3cret'";
  const std::string database = "sqlite:" + (folder_ / "test.db").string();
  for (const std::string& command : {
           "serve --grpc 127.0.0.1:0 --source " + database + " --user " + url,
           "serve --grpc 127.0.0.1:0 --source " + database + " --user=" + url,
           "serve --grpc 127.0.0.1:0 -d" + database + " --user 'password=s3cret'",
       }) {
    BackgroundProcess gateway("exec " SLUICE_BINARY " " + command);
    ASSERT_THAT(gateway.ReadLine(), HasSubstr("gRPC on"));
    const std::string shown = ReadFile("/proc/" + std::to_string(gateway.pid()) + "/cmdline");
    EXPECT_THAT(shown, HasSubstr("serve"));
    EXPECT_THAT(shown, Not(HasSubstr("s3cret"))) << command;
  }
}

// A statement may contain the password that it gives to a role.
TEST_F(Secrets, TheProcessListDoesNotShowStatements) {
  const std::string sql =
      "SELECT 's3cret' AS password; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
      " SELECT max(i) FROM n";
  for (const std::string& option : {"-c \"" + sql + "\"", "\"-c" + sql + "\"", "-e \"" + sql + "\"",
                                    "--command \"" + sql + "\"", "\"--command=" + sql + "\""}) {
    BackgroundProcess shell("exec " SLUICE_BINARY " sql --format csv --source sqlite:" +
                            (folder_ / "test.db").string() + " " + option);
    ASSERT_EQ(shell.ReadLine(), "password");
    const std::string shown = ReadFile("/proc/" + std::to_string(shell.pid()) + "/cmdline");
    EXPECT_THAT(shown, HasSubstr("--format"));
    EXPECT_THAT(shown, Not(HasSubstr("s3cret"))) << option;
  }
}

// Another process of the same user can neither trace it nor read its memory and environment.
TEST_F(Secrets, ProcessesAreNotDumpable) {
  chmod(folder_.c_str(), 0777);
  const std::string become =
      geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
  BackgroundProcess gateway(
      "exec " + become +
      SLUICE_BINARY " serve --grpc 127.0.0.1:0 --source sqlite:" + (folder_ / "test.db").string());
  if (gateway.ReadLine().empty()) {
    GTEST_SKIP() << "the binary lies where no other user reaches it";
  }
  struct stat about {};
  const std::string environment = "/proc/" + std::to_string(gateway.pid()) + "/environ";
  ASSERT_EQ(stat(environment.c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 0U) << "what is dumpable is its user's";
}

TEST_F(Secrets, TheSourceComesFromAFileOrTheEnvironment) {
  const std::string database = "sqlite:" + (folder_ / "test.db").string();
  std::ofstream(folder_ / "source") << database << "\n";
  std::ofstream(folder_ / "empty") << "\n";
  const std::string binary = SLUICE_BINARY;
  const std::string file = (folder_ / "source").string();
  const std::string query = " sql --format csv -c 'SELECT 7 AS n'";
  EXPECT_EQ(RunInShell(binary + query + " --source-file " + file).output, "n\n7\n");
  EXPECT_EQ(RunInShell("SLUICE_SOURCE_FILE=" + file + " " + binary + query).output, "n\n7\n");
  EXPECT_EQ(RunInShell("SLUICE_SOURCE=" + database + " " + binary + query).output, "n\n7\n");
  EXPECT_EQ(RunInShell(binary + " sample census --rows 10 --into-file " + file).exit_code, 0);
  // default < file < environment < flag
  EXPECT_EQ(
      RunInShell("SLUICE_SOURCE=sqlite:/nowhere/x.db " + binary + query + " --source-file " + file)
          .output,
      "n\n7\n");
  for (const std::string wrong : {"/nowhere", "/empty"}) {
    const ShellOutcome outcome =
        RunInShell(binary + query + " --source-file " + folder_.string() + wrong + " 2>&1");
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.output, HasSubstr("cannot read a data source from"));
  }
}

TEST_F(Secrets, OutputAndErrorsDoNotShowThem) {
  const std::string binary = SLUICE_BINARY;
  std::ofstream(folder_ / "sluice.conf") << "source postgresql://ann:s3cret@h/db\n";
  for (const std::string& arguments : {
           std::string("serve --print-config --source "
                       "'postgresql://ann:s3cret@h/db?sslpassword=s3cret&password=s3cret'"),
           std::string("sql -c 'SELECT 1' --source "
                       "'postgresql://ann:s3cret@127.0.0.1:1/db?sslpassword=s3cret'"),
           std::string("sql -c 'SELECT 1' --source 'postgresql://ann:s3c/ret@127.0.0.1:1/db'"),
           std::string("sql -c 'SELECT 1' --source 'host=h password=s3cret dbname=d'"),
           std::string("sql -c 'SELECT 1' --source 'mysql://ann:s3cret@h/db'"),
           std::string("sample census --rows 1 --into 'postgresql://ann:s3cret@127.0.0.1:1/db'"),
           "serve --config " + (folder_ / "sluice.conf").string(),
       }) {
    const ShellOutcome outcome = RunInShell(binary + " " + arguments + " 2>&1");
    EXPECT_NE(outcome.output, "") << arguments;
    EXPECT_THAT(outcome.output, Not(HasSubstr("s3cret"))) << arguments;
    EXPECT_THAT(outcome.output, Not(HasSubstr("s3c"))) << arguments;
  }
  EXPECT_THAT(
      RunInShell(binary + " serve --print-config --source 'postgresql://ann:s3cret@h/db'").output,
      HasSubstr("source = postgresql://ann@h/db\n"));
}

}  // namespace
}  // namespace sluice::server
