#include <gmock/gmock.h>

#include "tests/server/pgwire/door_fixture.h"

// "$user" in the search_path of these logins is a schema of Sluice.
namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Roles are the server's, not the database's: these tests of one program run one after another.
class LoginNamedLikeOurSchema : public DoorTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    // A role may also be renamed to it.
    Direct(
        fmt::format("CREATE ROLE once_{0} LOGIN; ALTER ROLE once_{0} RENAME TO {0};"
                    " ALTER DATABASE {1} OWNER TO {0}; GRANT CREATE ON SCHEMA public TO {0};"
                    " CREATE TABLE jobs AS SELECT 1 AS id, 'cook'::text AS title;"
                    " CREATE TABLE stage_x AS SELECT 1 AS i; ALTER TABLE jobs OWNER TO {0};"
                    " GRANT SELECT ON points TO {0}",
                    GetParam(), Name()));
    Start();
  }
  void TearDown() override {
    if (!IsSkipped()) {
      gateway_.reset();
      DropRole(GetParam());
    }
    DoorTest::TearDown();
  }
  std::string Ask(const std::string& script) const {
    return Psql(script, "-At", GetParam()).output;
  }
};

TEST_P(LoginNamedLikeOurSchema, PlainStatementsMeanTheUsersTables) {
  EXPECT_THAT(Ask("SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO m;\n"
                  "SELECT title FROM jobs;"),
              HasSubstr("\ncook\n"))
      << "in the session that made the schema";
  EXPECT_EQ(Ask("SELECT title FROM jobs;"), "cook\n");
  EXPECT_EQ(Ask("INSERT INTO jobs VALUES (2, 'baker'); DISCARD ALL; RESET search_path;"
                " SELECT count(*) FROM jobs;"),
            "INSERT 0 1\nDISCARD ALL\nRESET\n2\n");
  EXPECT_THAT(Ask("SELECT 1 AS x INTO mine;"
                  " SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'mine';"),
              HasSubstr("public"));
  EXPECT_THAT(Ask("\\dt"), ::testing::AllOf(HasSubstr("mine"), HasSubstr("|jobs|")));
  EXPECT_THAT(Ask("TRUNCATE models CASCADE;"), HasSubstr("42P01"));
  EXPECT_THAT(Ask("SELECT x FROM points TO PREDICT scored.y USING m; SELECT count(*) FROM scored;"),
              HasSubstr("\n300\n"));
  EXPECT_THAT(Ask("SELECT name FROM sluice.models;"), HasSubstr("m\n")) << "named, it is found";
}

TEST_P(LoginNamedLikeOurSchema, ThePathThatTheRoleWasGivenCounts) {
  Direct(
      fmt::format("CREATE SCHEMA app AUTHORIZATION {0}; CREATE TABLE app.jobs (of_app int);"
                  " ALTER TABLE app.jobs OWNER TO {0}; ALTER ROLE {0} IN DATABASE {1} SET"
                  " search_path = \\\"\\$user\\\", app, public",
                  GetParam(), Name()));
  EXPECT_EQ(Ask("SHOW search_path;"), "app, public\n");
  Ask("SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO m;");
  EXPECT_THAT(Ask("SELECT of_app FROM jobs;"), Not(HasSubstr("ERROR")));
}

TEST_P(LoginNamedLikeOurSchema, TheShellAndTheReadersOfATrainingDoTheSame) {
  const size_t host = database_.url().find('@');
  const auto shell = [&](const std::string& sql) {
    return RunInShell(
        fmt::format("HOME={} {} sql --source postgresql://{}{} --format csv -c \"{}\""
                    " 2>&1",
                    home_, SLUICE_BINARY, GetParam(), database_.url().substr(host), sql));
  };
  const std::string train =
      "SELECT i, title, i % 2 AS y FROM jobs, generate_series(1, 50) AS i TO TRAIN"
      " LinearClassifier LABEL y INTO m";
  for (int i = 0; i < 2; ++i) {  // the first one makes the schema
    const ShellOutcome trained = shell(train);
    EXPECT_EQ(trained.exit_code, 0) << trained.output;
  }
  EXPECT_THAT(shell("SELECT title FROM jobs").output, HasSubstr("cook"));
}

INSTANTIATE_TEST_SUITE_P(Schemas, LoginNamedLikeOurSchema,
                         ::testing::Values("sluice", "sluice_stage"));

}  // namespace
}  // namespace sluice
