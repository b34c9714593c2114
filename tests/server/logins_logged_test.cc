// The log of a gateway, at its default level: logins and statements, a line each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/server/sluice_process.h"

namespace sluice::server {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class LoginsLogged : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = (fs::temp_directory_path() / "sluice_logins_XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string Log(const char* name = "log") const {
    std::ifstream file(folder_ / name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  static int CountOf(const std::string& part, const std::string& text) {
    int count = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++count;
    }
    return count;
  }

  fs::path folder_;
};

TEST_F(LoginsLogged, OfBothOutcomesAndOfNobodyElse) {
  const std::string folder = folder_.string();
  const ShellOutcome made =
      RunInShell("printf 'right\nright\n' | " SLUICE_BINARY " password ann --password-file " +
                 folder + "/users 2>&1");
  ASSERT_EQ(made.exit_code, 0) << made.output;
  BackgroundProcess gateway("exec " SLUICE_BINARY " serve --source sqlite:" + folder +
                            "/test.db --grpc 127.0.0.1:0 --pg 127.0.0.1:0 --password-file " +
                            folder + "/users --audit " + folder + "/audit 2>" + folder + "/log");
  const std::string grpc = gateway.ReadLine();
  const std::string door = gateway.ReadLine();
  ASSERT_THAT(grpc, HasSubstr("gRPC on "));
  const std::string address = grpc.substr(grpc.rfind(' ') + 1);
  const size_t colon = door.find("127.0.0.1:");
  ASSERT_NE(colon, std::string::npos) << door;
  const std::string port = std::to_string(std::stoi(door.substr(colon + 10)));
  const auto psql = [&](const std::string& user, const std::string& password) {
    return RunInShell("PGUSER='" + user + "' PGPASSWORD='" + password +
                      "' psql -XAt -h 127.0.0.1 -p " + port +
                      " -c 'SELECT 1' 'sslmode=require dbname=test' 2>&1");
  };
  EXPECT_EQ(psql("ann", "right").output, "1\n");
  EXPECT_NE(psql("ann", "wrong").exit_code, 0);
  EXPECT_NE(
      psql("eve\n2026-01-01T00:00:00.000 info process=sluice login accepted role=root", "wrong")
          .exit_code,
      0);
  const ShellOutcome asked =
      RunInShell("PGPASSWORD=right " SLUICE_BINARY " sql --user ann --gateway " + address +
                 " -c \"SELECT 's3cret' AS password\" 2>&1");
  EXPECT_EQ(asked.exit_code, 0) << asked.output;

  const std::string log = Log();
  EXPECT_THAT(log, ContainsRegex("login accepted door=postgresql role=ann address=127.0.0.1 "));
  EXPECT_THAT(log, ContainsRegex("login refused door=postgresql role=ann address=127.0.0.1 "));
  EXPECT_THAT(log, ContainsRegex("login accepted door=grpc role=ann address=127.0.0.1 "));
  EXPECT_THAT(log, ContainsRegex("login refused door=postgresql role=\"eve.n2026-01-01T"));
  EXPECT_THAT(log, HasSubstr("statement role=ann address=127.0.0.1 "
                             "sql=\"SELECT '...' AS password\"\n"));
  EXPECT_THAT(log, Not(HasSubstr("s3cret")));
  EXPECT_THAT(log, Not(ContainsRegex("\n2026-01-01T"))) << "a line that a client has made";

  // Refusals that repeat are told together, in a minute or at the gateway's end.
  EXPECT_NE(psql("ann", "wrong").exit_code, 0);
  kill(gateway.pid(), SIGTERM);
  while (!gateway.ReadLine().empty()) {
  }
  const std::string refused = "login refused door=postgresql role=ann address=127.0.0.1 ";
  EXPECT_EQ(CountOf(refused, Log()), 2);
  EXPECT_THAT(Log(), HasSubstr(refused + "repeated=1 reason="));
  const std::string audited = R"("event":"login","door":"postgresql","role":"ann","address":)"
                              R"("127.0.0.1","database":"test","outcome":"28P01")";
  EXPECT_EQ(CountOf(audited, Log("audit")), 1);
  EXPECT_EQ(CountOf(R"("outcome":"28P01","reason":"password authentication failed for user )"
                    R"(\"ann\"","repeated":1,"since":")",
                    Log("audit")),
            1)
      << Log("audit");
}

}  // namespace
}  // namespace sluice::server
