#include <gmock/gmock.h>

#include "tests/security/doors.h"

// What an administrator sets for a role or a database holds where Sluice reads and writes as the
// role, as for the role's own statements.
namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RoleSettings : public Doors {
 protected:
  // For sessions that begin from now on: a gateway keeps some for a minute.
  void Alter(const std::string& setting) {
    ASSERT_EQ(Direct("SET transaction_read_only = off; ALTER " + setting).exit_code, 0);
    gateway_.reset();
    Start("--auth password");
  }
  static constexpr const char* kTrain =
      "SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO m;\n";
  static constexpr const char* kSleepless =
      "SELECT x, y FROM points WHERE pg_sleep(600) IS NULL TO TRAIN LinearClassifier LABEL y INTO"
      " never;\n";
};

TEST_P(RoleSettings, TimeIsLimited) {
  ASSERT_THAT(As(kBob, kTrain), HasSubstr("LinearClassifier"));
  for (const std::string& setting :
       {std::string("ROLE doors_bob SET"), "ROLE doors_bob IN DATABASE " + Name() + " SET",
        "DATABASE " + Name() + " SET"}) {
    Alter(setting + " statement_timeout = '700ms'");
    for (const char* const statement :
         {"SELECT pg_sleep(600);\n", kSleepless,
          "SELECT x FROM points WHERE pg_sleep(600) IS NULL TO PREDICT y USING m;\n",
          "SELECT x FROM points WHERE pg_sleep(600) IS NULL TO PREDICT seen.y USING m;\n",
          "SELECT x, y FROM points WHERE pg_sleep(600) IS NULL TO EVALUATE m;\n"}) {
      EXPECT_THAT(As(kBob, statement), HasSubstr("canceling statement due to statement timeout"))
          << setting << " " << statement;
    }
    Alter(setting + " statement_timeout = DEFAULT");
  }
}

// A job that nobody waits for: each query of its process. This one is slow once the job runs.
TEST_P(RoleSettings, TimeIsLimitedInAJobsProcess) {
  ASSERT_THAT(As(kBob, kTrain), HasSubstr("LinearClassifier"));
  ASSERT_EQ(
      Direct("CREATE FUNCTION slow(float8) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS 'BEGIN IF"
             " EXISTS (SELECT FROM sluice.jobs WHERE state = ''RUNNING'') THEN PERFORM"
             " pg_sleep(600); END IF; RETURN true; END'")
          .exit_code,
      0);
  Alter("ROLE doors_bob SET statement_timeout = '3s'");
  EXPECT_THAT(As(kBob,
                 "SET sluice.async = on;\nSELECT x, y FROM points WHERE slow(x) TO TRAIN"
                 " LinearClassifier LABEL y INTO never;\n"),
              HasSubstr("WAIT JOB"));
  EXPECT_TRUE(
      Becomes("SELECT count(*) FROM sluice.jobs WHERE model = 'never' AND error LIKE"
              " '%statement timeout%'",
              "1"));
}

TEST_P(RoleSettings, NothingIsWrittenReadOnly) {
  for (const std::string& setting :
       {std::string("ROLE doors_bob SET"), "ROLE doors_bob IN DATABASE " + Name() + " SET",
        "DATABASE " + Name() + " SET"}) {
    Alter(setting + " default_transaction_read_only = on");
    EXPECT_THAT(As(kBob, kTrain), HasSubstr("LinearClassifier")) << "in Sluice's own tables";
    for (const char* const statement :
         {"CREATE TABLE mine (a int);\n", "SELECT x FROM points TO PREDICT seen.y USING m;\n",
          "SELECT x, y FROM points TO EVALUATE m INTO judged;\n"}) {
      EXPECT_THAT(As(kBob, statement), HasSubstr("25006")) << setting << " " << statement;
    }
    EXPECT_THAT(As(kBob, "SELECT x FROM points TO PREDICT y USING m;\n"), Not(HasSubstr("ERROR")));
    Alter(setting + " default_transaction_read_only = DEFAULT");
  }
}

TEST_P(RoleSettings, MemoryIsTheRoles) {
  // Said to be IMMUTABLE, so that other connections than the session's read what it says.
  ASSERT_EQ(Direct("CREATE FUNCTION memory() RETURNS text LANGUAGE plpgsql IMMUTABLE AS"
                   " 'BEGIN RETURN current_setting(''work_mem''); END'")
                .exit_code,
            0);
  for (const std::string& setting :
       {std::string("ROLE doors_bob SET"), "ROLE doors_bob IN DATABASE " + Name() + " SET",
        "DATABASE " + Name() + " SET"}) {
    Alter(setting + " work_mem = '1234kB'");
    EXPECT_THAT(As(kBob,
                   "SELECT x, y FROM points WHERE memory() = '1234kB' TO TRAIN"
                   " LinearClassifier LABEL y INTO m;\n"),
                HasSubstr("LinearClassifier"))
        << setting;
    Alter(setting + " work_mem = DEFAULT");
  }
}

INSTANTIATE_TEST_SUITE_P(At, RoleSettings,
                         ::testing::Values(Door::kPostgres, Door::kGrpc, Door::kShell), NameOf);

}  // namespace
}  // namespace sluice
