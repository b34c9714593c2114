#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/pgwire/sqlite_door_fixture.h"

namespace sluice {
namespace {

// The gateway's users are then those in a file, at all of its doors.
TEST_F(SqliteDoorTest, UsersLogInByPasswordsOfAFile) {
  const auto password = [this](const std::string& input, const std::string& arguments) {
    return RunInShell(fmt::format("printf '%s' '{}' | HOME={} {} password {} 2>&1", input, home_,
                                  SLUICE_BINARY, arguments));
  };
  EXPECT_EQ(password("pässwörd\n", "ann").output,
            fmt::format("ann logs in by {}/.sluice/passwords\n", home_));
  EXPECT_EQ(password("other", "bob").exit_code, 0);
  EXPECT_NE(password("", "carl").output.find("the input has ended"), std::string::npos);
  Start("--pg 0.0.0.0:0");
  const auto as = [this](const std::string& user, const std::string& secret, const std::string& sql,
                         const std::string& options = "") {
    return RunInShell(fmt::format("PGPASSWORD='{}' psql -XAtq -P pager=off 'host=127.0.0.1 port={} "
                                  "user={} dbname=shop {}' -c \"{}\" 2>&1",
                                  secret, port_, user, options, sql))
        .output;
  };
  EXPECT_EQ(as("ann", "pässwörd", "SELECT current_user", "channel_binding=require"), "ann\n");
  EXPECT_EQ(as("ann", "pässwörd", "SELECT current_user", "sslmode=disable"), "ann\n");
  EXPECT_NE(as("ann", "pässwörd",
               "SELECT x, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=2 LABEL "
               "y INTO m")
                .find("m|1|1|"),
            std::string::npos);
  EXPECT_EQ(as("ann", "pässwörd", "SELECT usename FROM pg_user ORDER BY 1"), "ann\nbob\n");
  EXPECT_EQ(as("bob", "other", "\\du").substr(0, 12), "ann||{}\nbob|");
  // Models belong to all users; a job shows its user.
  EXPECT_EQ(as("bob", "other", "SHOW MODELS").substr(0, 2), "m|");
  EXPECT_EQ(as("bob", "other", "SELECT username FROM sluice_jobs"), "ann\n");
  const std::string refused = "FATAL:  password authentication failed for user \"{}\"\n";
  EXPECT_NE(as("bob", "pässwörd", "SELECT 1").find(fmt::format(fmt::runtime(refused), "bob")),
            std::string::npos);
  EXPECT_NE(as("nobody", "other", "SELECT 1").find(fmt::format(fmt::runtime(refused), "nobody")),
            std::string::npos);
  // gRPC requires a login, too.
  const auto grpc = [this](const std::string& secret) {
    return RunInShell(fmt::format("PGPASSWORD='{}' {} sql --gateway bob@127.0.0.1:{} --format csv "
                                  "-c 'SELECT count(*) AS n FROM points' 2>&1",
                                  secret, SLUICE_BINARY, grpc_port_))
        .output;
  };
  EXPECT_EQ(grpc("other"), "n\n300\n");
  EXPECT_NE(grpc("wrong").find("password authentication failed"), std::string::npos);
  EXPECT_NE(grpc("").find("asks for a password"), std::string::npos) << grpc("");
  EXPECT_EQ(password("", "--remove bob").exit_code, 0);
  EXPECT_NE(as("bob", "other", "SELECT 1").find("FATAL"), std::string::npos);
}

// A gateway that began without users lets nobody in who has not logged in, once there is one.
TEST_F(SqliteDoorTest, UsersMadeMeanwhileCloseItsDoors) {
  Start();
  const auto psql = [this] {
    return RunInShell(fmt::format("psql -XAtq '{}' -c 'SELECT 1' 2>&1", Conninfo())).output;
  };
  const auto grpc = [this] {
    return RunInShell(fmt::format("{} sql --gateway 127.0.0.1:{} --format csv -c 'SELECT 1 AS n' "
                                  "2>&1",
                                  SLUICE_BINARY, grpc_port_))
        .output;
  };
  EXPECT_EQ(psql(), "1\n");
  EXPECT_EQ(grpc(), "n\n1\n");
  ASSERT_EQ(RunInShell(
                fmt::format("printf 'secret' | HOME={} {} password ann 2>&1", home_, SLUICE_BINARY))
                .exit_code,
            0);
  for (const std::string& heard : {psql(), grpc()}) {
    EXPECT_NE(heard.find("users were made after this gateway had begun without any"),
              std::string::npos)
        << heard;
  }
}

}  // namespace
}  // namespace sluice
