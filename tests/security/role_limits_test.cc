// What one role may take of a gateway and its database: --role-limits. What it takes at one door
// counts at the other.
#include "tests/security/doors.h"
#include "tests/server/pgwire/sqlite_door_fixture.h"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTraining =
    "SELECT x, y FROM points TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO m;\n";

class RoleLimits : public Doors {
 protected:
  void TearDown() override {
    if (!IsSkipped()) {  // jobs outlive their gateway
      const bool used = Direct("SELECT to_regclass('sluice.jobs')").output != "\n";
      if (used) {
        Direct("UPDATE sluice.jobs SET cancel_requested = true");
        EXPECT_TRUE(Becomes("SELECT count(*) FROM sluice.jobs WHERE state = 'RUNNING'", "0"));
      }
    }
    Doors::TearDown();
  }
  void Limit(const std::string& limits) {
    Start("--auth password --max-statements 16 --role-limits " + limits);
  }
  // A session at the PostgreSQL door that stays until it is destroyed.
  std::unique_ptr<BackgroundProcess> Stay(const std::string& role) const {
    auto session = std::make_unique<BackgroundProcess>(
        fmt::format("PGPASSWORD=secret exec psql -XAtq '{}' -c \"SELECT 'here'\""
                    " -c 'SELECT pg_sleep(1000)' 2>&1",
                    Conninfo(role)));
    EXPECT_EQ(session->ReadLine(), "here");
    return session;
  }
  // Soon: the gateway sees that a client is gone, and its server.
  bool ComesIn() const {
    std::string answer;
    for (int i = 0; i < 100 && answer.find("let in") == std::string::npos; ++i) {
      answer = As(kBob, "SELECT 'let in' AS answer;\n");
    }
    return answer.find("let in") != std::string::npos;
  }
  static std::string Async() { return fmt::format("SET sluice.async = on;\n{};\n", kLongTraining); }
};

INSTANTIATE_TEST_SUITE_P(At, RoleLimits, ::testing::Values(Door::kPostgres, Door::kGrpc), NameOf);

TEST_P(RoleLimits, OfSessions) {
  ASSERT_NO_FATAL_FAILURE(Limit("sessions=2"));
  auto first = Stay(kBob);
  const auto second = Stay(kBob);
  const std::string refused = As(kBob, "SELECT 'let in' AS answer;\n");
  EXPECT_THAT(refused, AllOf(HasSubstr("role \"doors_bob\" has 2 sessions at this gateway"),
                             Not(HasSubstr("let in"))));
  EXPECT_THAT(As(kAnn, "SELECT 'let in' AS answer;\n"), HasSubstr("let in"));
  const auto roots = Stay(kRoot);
  const auto roots_too = Stay(kRoot);
  EXPECT_THAT(As(kRoot, "SELECT 'let in' AS answer;\n"), HasSubstr("let in"));
  // What a server does for a client that is gone counts until it ends.
  first.reset();
  EXPECT_THAT(As(kBob, "SELECT 'let in' AS answer;\n"), HasSubstr("has 2 sessions"));
  ASSERT_EQ(Direct("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'doors_bob'"
                   " AND query LIKE '%pg_sleep%' ORDER BY backend_start LIMIT 1")
                .output,
            "t\n");
  EXPECT_TRUE(ComesIn());
  {
    BackgroundProcess copies(fmt::format(
        "PGPASSWORD=secret exec /usr/bin/python3 -c \"\n"
        "import psycopg2, time\n"
        "class Rows:\n"
        "    def read(self, size):\n"
        "        print('here', flush=True)\n"
        "        time.sleep(1000)\n"
        "psycopg2.connect('{}').cursor().copy_expert('COPY points FROM STDIN', Rows())\n\"",
        Conninfo(kBob)));
    ASSERT_EQ(copies.ReadLine(), "here");
    EXPECT_THAT(As(kBob, "SELECT 'let in' AS answer;\n"), HasSubstr("has 2 sessions"));
  }
  EXPECT_TRUE(ComesIn());
}

TEST_P(RoleLimits, OfSessionsLeaveRoomOnTheServerUnasked) {
  if (GetParam() != Door::kPostgres) {
    GTEST_SKIP() << "one gateway has one limit";
  }
  const std::string most = Direct("SELECT current_setting('max_connections')::int / 2").output;
  const std::string program = fmt::format(
      "import psycopg2\n"
      "sessions = []\n"
      "try:\n"
      "    while len(sessions) < 1000:\n"
      "        sessions.append(psycopg2.connect('{}'))\n"
      "except psycopg2.OperationalError as error:\n"
      "    print(error)\n"
      "print(len(sessions))\n",
      Conninfo(kBob));
  EXPECT_THAT(
      RunInShell(fmt::format("PGPASSWORD=secret /usr/bin/python3 -c \"{}\" 2>&1", program)).output,
      AllOf(HasSubstr("sessions at this gateway"), ::testing::EndsWith("\n" + most)));
}

TEST_P(RoleLimits, OfStatements) {
  ASSERT_NO_FATAL_FAILURE(Limit("statements=3"));
  const std::string four = "SHOW MODELS;\nSHOW JOBS;\nSHOW MODELS;\nSHOW JOBS;\n";
  EXPECT_THAT(As(kBob, four),
              AllOf(HasSubstr("53400"), HasSubstr("role \"doors_bob\" has run 3 statements")));
  // At the other door, too.
  EXPECT_THAT(Psql("SHOW MODELS;\n", "-At", kBob).output, HasSubstr("53400"));
  EXPECT_THAT(As(kAnn, "SHOW MODELS;\nSHOW JOBS;\n"), Not(HasSubstr("53400")));
  EXPECT_THAT(As(kRoot, four), Not(HasSubstr("53400")));
}

TEST_P(RoleLimits, OfJobs) {
  ASSERT_NO_FATAL_FAILURE(Limit("jobs=2"));
  // One that is begun at the other door counts.
  EXPECT_THAT(Psql(Async(), "-At", kBob).output, HasSubstr("RUNNING"));
  EXPECT_THAT(As(kBob, Async()), HasSubstr("RUNNING"));
  for (const std::string& third : {Async(), std::string(kTraining)}) {
    EXPECT_THAT(As(kBob, third),
                AllOf(HasSubstr("53300"), HasSubstr("role \"doors_bob\" runs 2 jobs")))
        << third;
  }
  EXPECT_THAT(As(kAnn, Async()), HasSubstr("RUNNING"));
  EXPECT_THAT(As(kBob, "CANCEL JOB 1;\n"), Not(HasSubstr("ERROR")));
  ASSERT_TRUE(Becomes("SELECT state FROM sluice.jobs WHERE id = 1", "CANCELLED"));
  EXPECT_THAT(As(kBob, kTraining), HasSubstr("LinearClassifier"));
}

TEST_P(RoleLimits, OfJobsLeavePlacesToOthersUnasked) {
  Start("--auth password --max-statements 4");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(As(kBob, Async()), HasSubstr("RUNNING"));
  }
  EXPECT_THAT(As(kBob, Async()), HasSubstr("role \"doors_bob\" runs 3 jobs"));
  EXPECT_THAT(As(kAnn, Async()), HasSubstr("RUNNING"));
}

TEST_P(RoleLimits, OfJobsHoldForJobsThatBeginAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Limit("jobs=2"));
  const std::string file = home_ + "/async.sql";
  FILE* const out = fopen(file.c_str(), "w");
  fputs(Async().c_str(), out);
  fclose(out);
  const std::string one =
      GetParam() == Door::kPostgres
          ? fmt::format("psql -XAt '{}' < {} 2>&1", Conninfo(kBob), file)
          : fmt::format("{} sql --gateway {}@127.0.0.1:{} --format csv < {} 2>&1", SLUICE_BINARY,
                        kBob, grpc_port_, file);
  RunInShell(fmt::format("export HOME={} PGPASSWORD=secret; for i in 1 2 3 4 5; do {} & done; wait",
                         home_, one));
  EXPECT_EQ(Direct("SELECT count(*) FROM sluice.jobs WHERE state = 'RUNNING'").output, "2\n");
}

// SET ROLE gives no further jobs.
TEST_P(RoleLimits, OfJobsAreThoseOfTheLogin) {
  ASSERT_NO_FATAL_FAILURE(Limit("jobs=1"));
  ASSERT_EQ(Direct("GRANT doors_ann TO doors_bob").exit_code, 0);
  EXPECT_THAT(As(kBob, Async()), HasSubstr("RUNNING"));
  if (GetParam() == Door::kPostgres) {  // a call over gRPC has no such session
    EXPECT_THAT(As(kBob, "SET ROLE doors_ann;\n" + std::string(kTraining)), HasSubstr("53300"));
  }
  EXPECT_THAT(As(kAnn, kTraining), HasSubstr("LinearClassifier"));
}

TEST_P(RoleLimits, OfVersions) {
  ASSERT_NO_FATAL_FAILURE(Limit("versions=2"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(As(kBob, kTraining), HasSubstr("LinearClassifier"));
  }
  EXPECT_THAT(As(kBob, kTraining), AllOf(HasSubstr("53400"), HasSubstr("model 'm' has 2 versions"),
                                         HasSubstr("--role-limits")));
  EXPECT_EQ(Direct("SELECT count(*) FROM sluice.jobs WHERE state = 'FAILED'").output, "0\n");
  EXPECT_THAT(As(kBob, "GRANT USAGE ON MODEL m TO doors_ann;\n"), Not(HasSubstr("ERROR")))
      << "stores nothing";
  EXPECT_THAT(As(kBob, "DROP MODEL m:1;\n" + std::string(kTraining)),
              HasSubstr("LinearClassifier"));
}

TEST_P(RoleLimits, OfVersionsOfModelTypes) {
  ASSERT_NO_FATAL_FAILURE(Limit("versions=2"));
  const std::string make =
      "CREATE OR REPLACE MODEL TYPE k LANGUAGE keras AS $$"
      R"({"class_name": "Sequential", "config": {"layers": [{"class_name": "Dense", "config":)"
      R"( {"name": "d", "units": 1, "batch_input_shape": [null, 1]}}]}})"
      "$$;\n";
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(As(kBob, make), Not(HasSubstr("ERROR")));
  }
  EXPECT_THAT(As(kBob, make), AllOf(HasSubstr("53400"), HasSubstr("'k' has 2 versions")));
}

TEST_P(RoleLimits, OfStoredModels) {
  ASSERT_NO_FATAL_FAILURE(Limit("stored=1"));
  EXPECT_THAT(As(kBob,
                 "SELECT x, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[600, 600]"
                 ", train.epoch=1 LABEL y INTO large;\n"),
              HasSubstr("DNNClassifier"));
  EXPECT_THAT(As(kBob, kTraining),
              AllOf(HasSubstr("53400"), HasSubstr("MiB of models"), HasSubstr("--role-limits")));
  EXPECT_THAT(As(kAnn, kTraining), HasSubstr("LinearClassifier"));
  EXPECT_THAT(As(kBob, "DROP MODEL large;\n" + std::string(kTraining)), Not(HasSubstr("53400")));
}

// Users of a SQLite file are those of sluice password.
class RoleLimitsOnSqlite : public SqliteDoorTest {
 protected:
  void Limit(const std::string& limits) {
    for (const char* user : {"ann", "bob"}) {
      ASSERT_EQ(RunInShell(fmt::format("echo secret | HOME={} {} password {} 2>&1", home_,
                                       SLUICE_BINARY, user))
                    .exit_code,
                0);
    }
    Start("--pg 127.0.0.1:0 --role-limits " + limits);
  }
  std::string Conninfo(const std::string& user) const {
    return fmt::format("host=127.0.0.1 port={} user={} dbname=shop", port_, user);
  }
  std::string AtPort(const std::string& user, const std::string& script) const {
    return RunInShell(fmt::format("PGPASSWORD=secret psql -XAt -v VERBOSITY=verbose '{}' -f - "
                                  "2>&1 <<'END'\n{}\nEND",
                                  Conninfo(user), script))
        .output;
  }
  std::string OverGrpc(const std::string& user, const std::string& script) const {
    return RunInShell(
               fmt::format("HOME={} PGPASSWORD=secret {} sql --gateway {}@127.0.0.1:{} --format csv"
                           " 2>&1 <<'END'\n{}\nEND",
                           home_, SLUICE_BINARY, user, grpc_port_, script))
        .output;
  }
};

TEST_F(RoleLimitsOnSqlite, HoldForItsUsersAtBothDoors) {
  ASSERT_NO_FATAL_FAILURE(Limit("sessions=1,statements=6,versions=2"));
  {
    BackgroundProcess stays(fmt::format(
        "PGPASSWORD=secret exec psql -XAtq '{}' -c \"SELECT 'here'\" -c 'WITH RECURSIVE n(i) AS"
        " (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n' 2>&1",
        Conninfo("bob")));
    ASSERT_EQ(stays.ReadLine(), "here");
    EXPECT_THAT(AtPort("bob", "SELECT 'let in';"), HasSubstr("has 1 session at this gateway"));
    EXPECT_THAT(OverGrpc("bob", "SELECT 'let in';"), HasSubstr("has 1 session at this gateway"));
    EXPECT_THAT(AtPort("ann", "SELECT 'let in';"), HasSubstr("let in"));
  }
  std::string begun = AtPort("bob", kTraining);
  for (int i = 0; i < 100 && begun.find("sessions") != std::string::npos; ++i) {
    usleep(100'000);  // until the gateway has seen that the session is gone
    begun = AtPort("bob", kTraining);
  }
  EXPECT_THAT(begun, HasSubstr("LinearClassifier"));
  EXPECT_THAT(OverGrpc("bob", kTraining), HasSubstr("LinearClassifier"));
  EXPECT_THAT(AtPort("bob", kTraining), HasSubstr("model 'm' has 2 versions"));
  EXPECT_THAT(OverGrpc("bob", kTraining), HasSubstr("model 'm' has 2 versions"));
  // Ten seconds give one more, and the statements before may have taken long.
  std::string more_than_allowed;
  for (int i = 0; i < 8; ++i) {
    more_than_allowed += "SHOW MODELS;\n";
  }
  EXPECT_THAT(OverGrpc("bob", more_than_allowed), HasSubstr("53400"));
  EXPECT_THAT(AtPort("bob", more_than_allowed), HasSubstr("role \"bob\" has run 6 statements"));
  EXPECT_THAT(AtPort("ann", "SHOW MODELS;"), Not(HasSubstr("53400")));
}

}  // namespace
}  // namespace sluice
