// Connections that a gateway has kept are the session's: with its settings, and of its role.
#include "tests/security/doors.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Sessions : public Doors {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Doors::SetUp());
    if (IsSkipped()) {
      return;
    }
    ASSERT_EQ(Direct("CREATE SCHEMA s1; GRANT ALL ON SCHEMA s1 TO PUBLIC;"
                     " CREATE TABLE s1.t AS SELECT i AS id FROM generate_series(1, 25) i;"
                     " CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 22) i;"
                     " GRANT ALL ON s1.t, t TO PUBLIC")
                  .exit_code,
              0);
    ASSERT_THAT(As(kBob, "SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO m;\n"),
                HasSubstr("LinearClassifier"));
  }
  static constexpr const char* kPredict =
      "SELECT id AS x FROM t TO PREDICT made.y USING m;\nSELECT count(*) AS n FROM made;\n";
};

INSTANTIATE_TEST_SUITE_P(At, Sessions, ::testing::Values(Door::kPostgres, Door::kGrpc), NameOf);

// What the client asks for when it connects (PGOPTIONS, JDBC's currentSchema) counts as what it
// SETs.
TEST_P(Sessions, ReadByTheSettingsThatTheyBeganWith) {
  if (GetParam() != Door::kPostgres) {
    GTEST_SKIP() << "a call over gRPC has no such settings";
  }
  setenv("PGOPTIONS", "-c search_path=s1,public", 1);
  const std::string answer = As(kBob, kPredict);
  setenv("PGOPTIONS", "-c default_transaction_read_only=on", 1);
  const std::string refused = As(kBob, "SELECT x FROM points TO PREDICT never.y USING m;\n");
  unsetenv("PGOPTIONS");
  EXPECT_THAT(answer, HasSubstr("25\n"));
  EXPECT_THAT(refused, HasSubstr("read-only transaction"));
}

TEST_P(Sessions, ReadByWhatIsSetForTheRoleNow) {
  if (GetParam() != Door::kPostgres) {
    GTEST_SKIP() << "a session over gRPC is kept for up to a minute";
  }
  EXPECT_THAT(As(kBob, kPredict), HasSubstr("22\n"));
  ASSERT_EQ(Direct("ALTER ROLE doors_bob SET search_path = s1, public").exit_code, 0);
  EXPECT_THAT(As(kBob, kPredict), HasSubstr("25\n"));
  ASSERT_EQ(Direct("ALTER ROLE doors_bob SET default_transaction_read_only = on").exit_code, 0);
  EXPECT_THAT(As(kBob, "SELECT x FROM points TO PREDICT never.y USING m;\n"),
              HasSubstr("read-only transaction"));
}

// A policy of the table is looked at before the rows are: that waits for the lock, too.
TEST_P(Sessions, WaitForALockNoLongerThanTheStatementMay) {
  ASSERT_EQ(Direct("CREATE TABLE w AS SELECT x, y FROM points; GRANT ALL ON w TO PUBLIC;"
                   " ALTER TABLE w ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON w USING (x > -1)")
                .exit_code,
            0);
  const BackgroundProcess holder(
      "exec psql -Atqc \"SELECT 1\" -c \"BEGIN; LOCK TABLE w; SELECT 'held'"
      "; SELECT pg_sleep(100)\" '" +
      database_.url() + "'");
  std::string held = "0";
  for (int i = 0; i < 200 && held.substr(0, 1) != "1"; ++i) {
    usleep(50'000);
    held = Direct(
               "SELECT count(*) FROM pg_locks WHERE relation = 'w'::regclass AND mode ="
               " 'AccessExclusiveLock' AND granted")
               .output;
  }
  ASSERT_EQ(held.substr(0, 1), "1");
  EXPECT_THAT(As(kBob,
                 "SET statement_timeout = '2s';\nSELECT x, y FROM w TO TRAIN LinearClassifier"
                 " LABEL y INTO never;\n"),
              HasSubstr("statement timeout"));
}

TEST_P(Sessions, AreNotThoseOfAnotherRoleThatGetsTheName) {
  const std::string secret = "SELECT 'kept' AS found FROM hers;\n";
  EXPECT_THAT(As(kBob, "CREATE TABLE hers AS SELECT 1 AS a;\n" + secret), HasSubstr("kept"));
  ASSERT_EQ(Direct("ALTER ROLE doors_bob RENAME TO doors_old").exit_code, 0);
  roles_.push_back("doors_old");
  std::erase(roles_, std::string(kBob));
  ASSERT_NO_FATAL_FAILURE(MakeRole(kBob));
  EXPECT_THAT(As(kBob, secret), HasSubstr("permission denied"));
  EXPECT_THAT(As(kBob, "DROP MODEL m;\n"), HasSubstr("there is no model 'm'"));
  EXPECT_THAT(As(kBob, "SHOW MODELS;\n"), Not(HasSubstr("LinearClassifier")));
}

}  // namespace
}  // namespace sluice
