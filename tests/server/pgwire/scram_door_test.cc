#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "catalog/data_source.h"
#include "catalog/source_url.h"
#include "tests/server/pgwire/door_fixture.h"
#include "tests/support/database_proxy.h"

// A door that never sees a password: SCRAM in front, the role's own keys behind it, tickets for
// trainings.
namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Whose socket it is that is bound to this port of the loopback: a command line for each process.
std::string OwnersOf(const std::string& port) {
  std::ifstream sockets("/proc/net/tcp");
  std::string inode = "none";
  const std::string local = fmt::format("0100007F:{:04X} ", std::stoi(port));
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream fields(line);
    std::string number, address, word;
    fields >> number >> address;
    if (address + " " == local) {
      for (int i = 0; i < 8; ++i) {
        fields >> word;
      }
      inode = word;
    }
  }
  std::string owners;
  std::error_code gone;
  for (const auto& process : std::filesystem::directory_iterator("/proc")) {
    for (std::filesystem::directory_iterator file(process.path() / "fd", gone), end; file != end;
         file.increment(gone)) {
      if (std::filesystem::read_symlink(file->path(), gone) == "socket:[" + inode + "]") {
        std::string command;
        std::getline(std::ifstream(process.path() / "cmdline"), command);
        std::replace(command.begin(), command.end(), '\0', ' ');
        owners += command + "\n";
      }
    }
  }
  return owners;
}

class ScramDoorTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    const std::string group = testing::kPasswordRole;
    Direct(fmt::format("CREATE ROLE {} LOGIN", group));  // it may exist
    role_ = "scram_" + Name();
    ASSERT_EQ(Direct(fmt::format("CREATE ROLE {0} LOGIN PASSWORD 'pässwörd' IN ROLE {1};"
                                 "GRANT SELECT ON points TO {0}; CREATE SCHEMA AUTHORIZATION {0}",
                                 role_, group))
                  .exit_code,
              0);
  }
  void TearDown() override {
    gateway_.reset();
    if (!role_.empty()) {
      Direct(fmt::format("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", role_));
    }
    DoorTest::TearDown();
  }
  ShellOutcome As(const std::string& role, const std::string& password, const std::string& sql,
                  const std::string& options = "") const {
    return RunInShell(
        fmt::format("printf '%s' \"{}\" | PGPASSWORD='{}' psql -XAt -P pager=off '{} {}' 2>&1", sql,
                    password, Conninfo(role), options));
  }
  // False: the server does not ask for passwords, so there is nothing to test.
  bool ServerAsks() const { return As(role_, "pässwörd", "SELECT 'in'").output == "in\n"; }

  bool ServerAsksDirectly() const {
    return catalog::OpenDataSourceAs(database_.url(), role_, "pässwörd").status().sqlstate() !=
           "28000";
  }

  std::string role_;
};

TEST_F(ScramDoorTest, TheClientProvesThatItKnowsThePassword) {
  Start("--auth scram");
  EXPECT_EQ(As(role_, "pässwörd", "SELECT current_user", "channel_binding=require").output,
            role_ + "\n");
  EXPECT_EQ(As(role_, "pässwörd", "SELECT current_user", "sslmode=disable").output, role_ + "\n");
  const std::string refused = "FATAL:  password authentication failed for user \"{}\"\n";
  EXPECT_THAT(As(role_, "wrong", "SELECT 1").output,
              HasSubstr(fmt::format(fmt::runtime(refused), role_)));
  // A role that does not exist looks the same.
  EXPECT_THAT(As("nobody_here", "wrong", "SELECT 1").output,
              HasSubstr(fmt::format(fmt::runtime(refused), "nobody_here")));
  const std::string many = As(role_, "guess", "SELECT 1").output +
                           As(role_, "guess", "SELECT 1").output +
                           As(role_, "guess", "SELECT 1").output;
  EXPECT_THAT(many, HasSubstr("FATAL:  too many failed logins"));
}

TEST_F(ScramDoorTest, TheGatewaysOwnPasswordMayLieInItsSourceFile) {
  if (!ServerAsksDirectly()) {
    GTEST_SKIP() << "the server's pg_hba.conf does not ask members of " << testing::kPasswordRole;
  }
  const std::string own = "own_" + Name();
  ASSERT_EQ(Direct(fmt::format("CREATE ROLE {} LOGIN SUPERUSER PASSWORD 'secret' IN ROLE {}", own,
                               testing::kPasswordRole))
                .exit_code,
            0);
  std::string url = catalog::WithRole(database_.url(), own);
  url.insert(url.find('@'), ":secret");
  std::ofstream(home_ + "/source") << url << "\n";
  Start("--auth scram --source-file " + home_ + "/source");
  EXPECT_EQ(As(role_, "pässwörd", "SELECT current_user").output, role_ + "\n");
  gateway_.reset();
  Direct(fmt::format("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", own));
}

// As the server's "trust" lets in whoever says that name, with the right password and with none.
TEST_F(ScramDoorTest, AServerThatDoesNotAskIsRefused) {
  const std::string trusted = "trusted_" + Name();
  ASSERT_EQ(
      Direct(fmt::format("CREATE ROLE {} LOGIN SUPERUSER PASSWORD 'pässwörd'", trusted)).exit_code,
      0);
  Start("--auth scram");
  EXPECT_THAT(As(trusted, "pässwörd", "SELECT 'in'").output,
              HasSubstr("in without asking for the password"));
  EXPECT_THAT(As(trusted, "", "SELECT 'in'").output, Not(HasSubstr("in\n")));
  gateway_.reset();
  Start("--auth trust");
  EXPECT_EQ(As(trusted, "", "SELECT current_user").output, trusted + "\n");
  gateway_.reset();
  Direct("DROP ROLE " + trusted);
}

TEST_F(ScramDoorTest, TheServersOwnRulesHold) {
  Start("--auth scram");
  Direct(fmt::format("ALTER ROLE {} VALID UNTIL '2001-01-01'", role_));
  EXPECT_THAT(As(role_, "pässwörd", "SELECT 1").output,
              HasSubstr("password authentication failed"));
  Direct(fmt::format("ALTER ROLE {} VALID UNTIL 'infinity' NOLOGIN", role_));
  EXPECT_THAT(As(role_, "wrong", "SELECT 1").output, HasSubstr("password authentication failed"));
  EXPECT_THAT(As(role_, "pässwörd", "SELECT 1").output,
              HasSubstr(fmt::format("FATAL:  role \"{}\" is not permitted to log in", role_)));
}

TEST_F(ScramDoorTest, TicketsLetAJobInAndNobodyElse) {
  Start("--auth scram");
  if (!ServerAsks()) {
    GTEST_SKIP() << "this PostgreSQL does not ask members of needs_password";
  }
  const std::string trained =
      As(role_, "pässwörd",
         "SELECT * FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[4],"
         " engine.num_workers=2, engine.num_ps=1, train.epoch=2 LABEL y INTO m;"
         "SELECT x FROM points TO PREDICT scored.y USING m; SELECT count(*) FROM scored;")
          .output;
  EXPECT_THAT(trained, HasSubstr("m|1|"));
  EXPECT_THAT(trained, HasSubstr("\n300\n"));
  // The table belongs to the user, and was read as the user.
  EXPECT_EQ(Direct("SELECT tableowner FROM pg_tables WHERE tablename = 'scored'").output,
            role_ + "\n");
  Direct(fmt::format("REVOKE SELECT ON points FROM {}", role_));
  EXPECT_THAT(
      As(role_, "pässwörd", "SELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO m;").output,
      HasSubstr("permission denied for table points"));
  EXPECT_EQ(Direct("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                   " AND usename = '" +
                   role_ + "' AND state = 'active'")
                .output,
            "0\n");
}

// Who has logged in hands the connection over, so that rows take no way round.
TEST_F(ScramDoorTest, RowsOfATicketDoNotPassItsDesk) {
  Start("--auth scram");
  if (!ServerAsks()) {
    GTEST_SKIP() << "this PostgreSQL does not ask members of needs_password";
  }
  const std::string started =
      As(role_, "pässwörd",
         "SET sluice.async = on; SELECT p.* FROM points p, generate_series(1, 40) TO TRAIN"
         " DNNClassifier WITH model.hidden_units=[4], engine.num_workers=2, engine.num_ps=1,"
         " train.batch_size=16, train.epoch=2000 LABEL y INTO m;")
          .output;
  ASSERT_THAT(started, HasSubstr("|RUNNING|"));
  ASSERT_TRUE(Becomes("SELECT count(*) > 0 FROM sluice.job_events WHERE kind = 'epoch_done'", "t"));
  std::istringstream ports(
      Direct("SELECT client_port FROM pg_stat_activity WHERE usename = '" + role_ + "'").output);
  int connections = 0;
  for (std::string port; std::getline(ports, port);) {
    const std::string owners = OwnersOf(port);
    if (owners.empty()) {  // it has ended meanwhile
      EXPECT_TRUE(Becomes("SELECT count(*) FROM pg_stat_activity WHERE usename = '" + role_ +
                              "' AND client_port = " + port,
                          "0"));
      continue;
    }
    ++connections;
    EXPECT_THAT(owners, Not(HasSubstr(" desk "))) << owners;
  }
  EXPECT_GT(connections, 0);
  EXPECT_THAT(As(role_, "pässwörd", "CANCEL JOB 1;").output, Not(HasSubstr("ERROR")));
  EXPECT_TRUE(Becomes("SELECT state FROM sluice.jobs", "CANCELLED"));
}

TEST_F(ScramDoorTest, AJobReadsOnWhenItsGatewayIsKilled) {
  Start("--auth scram");
  if (!ServerAsks()) {
    GTEST_SKIP() << "this PostgreSQL does not ask members of needs_password";
  }
  const std::string started =
      As(role_, "pässwörd",
         "SET sluice.async = on; SELECT p.* FROM points p, generate_series(1, 40) TO TRAIN"
         " DNNClassifier WITH model.hidden_units=[4], engine.num_workers=2, engine.num_ps=1,"
         " train.batch_size=16, train.epoch=12 LABEL y INTO m;")
          .output;
  EXPECT_THAT(started, HasSubstr("|RUNNING|"));
  EXPECT_EQ(As(role_, "pässwörd",
               "SELECT 1 FROM sluice.jobs WHERE state = 'RUNNING' AND rows_trained = 0")
                .output,
            "1\n");
  gateway_.reset();  // SIGKILL
  Start("--auth scram");
  const std::string ended = As(role_, "pässwörd", "WAIT JOB 1;").output;
  EXPECT_THAT(ended, HasSubstr("m|1|"));
  EXPECT_EQ(As(role_, "pässwörd",
               "SELECT rows_trained > 130000, rows_trained % 12, rows_retried FROM sluice.jobs"
               " WHERE state = 'SUCCEEDED'")
                .output,
            "t|0|0\n");
}

TEST_F(ScramDoorTest, AnAdministratorsFunctionIsEnough) {
  const std::string gateway = "gate_" + Name();
  ASSERT_EQ(Direct(fmt::format("CREATE ROLE {} LOGIN; GRANT CREATE ON DATABASE {} TO {}", gateway,
                               Name(), gateway))
                .exit_code,
            0);
  std::string url = database_.url();
  url.replace(url.find("postgres@"), 8, gateway);
  const std::string serve = fmt::format(
      "HOME={} timeout 20 {} serve --source '{}' --grpc 127.0.0.1:0 --pg 127.0.0.1:0"
      " --auth scram 2>&1",
      home_, SLUICE_BINARY, url);
  EXPECT_THAT(RunInShell(serve).output, HasSubstr("HINT: let a superuser run what 'sluice setup'"));
  const auto set_up = [&] {
    return RunInShell(fmt::format("{} setup --source '{}' | psql -X -v ON_ERROR_STOP=1 '{}' 2>&1",
                                  SLUICE_BINARY, url, database_.url()));
  };
  EXPECT_EQ(set_up().exit_code, 0);
  EXPECT_THAT(
      Direct(fmt::format("SET ROLE {}; SELECT sluice.scram_verifier('postgres') IS NULL", gateway))
          .output,
      HasSubstr("t\n"));
  Start("--auth scram", url);
  EXPECT_EQ(As(role_, "pässwörd", "SELECT current_user").output, role_ + "\n");
  // The owner of a schema can put another function there.
  EXPECT_EQ(Direct("ALTER SCHEMA sluice OWNER TO " + role_).exit_code, 0);
  EXPECT_THAT(As(role_, "pässwörd", "SELECT current_user").output, HasSubstr("FATAL"));
  gateway_.reset();
  EXPECT_THAT(RunInShell(serve).output, HasSubstr("HINT: let a superuser run what 'sluice setup'"));
  EXPECT_THAT(set_up().output,
              HasSubstr("another role than the gateway's login has made schema sluice"));
  Direct(fmt::format("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", gateway));
}

// The log says where the database is, and who the gateway is there.
TEST_F(ScramDoorTest, AStrangerIsNotToldWhereTheDatabaseIs) {
  const std::string url = database_.url();
  const size_t port = url.rfind(':') + 1, path = url.rfind('/');
  for (const char* auth : {"--auth scram", "--auth password"}) {
    testing::DatabaseProxy proxy(std::stoi(url.substr(port, path - port)));
    const std::string place = std::to_string(proxy.port());
    Start(auth, url.substr(0, port) + place + url.substr(path));
    proxy.Cut();
    const std::string told = As(role_, "pässwörd", "SELECT 'in'").output;
    EXPECT_THAT(told, HasSubstr("FATAL:  the database cannot be reached"));
    EXPECT_THAT(told, Not(HasSubstr(place)));
    gateway_.reset();
  }
}

TEST_F(ScramDoorTest, AUnixSocketIsADoor) {
  Start("--auth scram", "", home_ + ":7777");
  const auto ask = [this](const std::string& password) {
    return RunInShell(fmt::format("PGPASSWORD='{}' psql -XAt -c 'SELECT current_user'"
                                  " 'host={} port=7777 user={} dbname={}' 2>&1",
                                  password, home_, role_, Name()))
        .output;
  };
  EXPECT_EQ(ask("pässwörd"), role_ + "\n");
  EXPECT_THAT(ask("wrong"), HasSubstr("password authentication failed"));
  // The remains of a killed gateway do not stop the next one.
  gateway_.reset();  // by SIGKILL
  Start("--auth password", "", home_ + ":7777");
  EXPECT_EQ(ask("pässwörd"), role_ + "\n");
}

}  // namespace
}  // namespace sluice
