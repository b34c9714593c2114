#include <gmock/gmock.h>

#include "tests/server/pgwire/door_fixture.h"

// PREDICT of few rows reads them through the client's own session, with a model that stays loaded.
namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FewRowsDoorTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (!IsSkipped()) {
      Direct(
          "ALTER TABLE points ADD COLUMN id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY;"
          " ANALYZE points");
      Start();
      Train("y");
    }
  }
  void Train(const std::string& label) const {
    const ShellOutcome trained =
        Psql("SELECT x, " + label + " AS y FROM points TO TRAIN LinearRegressor LABEL y INTO m;");
    ASSERT_THAT(trained.output, Not(HasSubstr("ERROR")));
  }
  std::string Ask(const std::string& script) const { return Psql(script, "-At -F,").output; }

  static constexpr const char* kOne = "SELECT x FROM points WHERE id = 7 TO PREDICT USING m;\n";
};

TEST_F(FewRowsDoorTest, NothingElseReadsOrIsStored) {
  EXPECT_EQ(Ask(kOne).substr(0, 2), "7,");
  const auto stored_and_connected = [this] {
    return Direct(
               "SELECT (SELECT max(id) FROM sluice.jobs), count(*) FROM pg_stat_activity WHERE"
               " application_name = 'sluice' AND datname = current_database()")
        .output;
  };
  const std::string before = stored_and_connected();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Ask(kOne).substr(0, 2), "7,");
  }
  EXPECT_EQ(stored_and_connected(), before);
}

TEST_F(FewRowsDoorTest, TheSessionsOwnRowsAreSeen) {
  const std::string inside = Ask("BEGIN; UPDATE points SET x = 1000 WHERE id = 7;\n" +
                                 std::string(kOne) + "ROLLBACK;\n" + kOne);
  EXPECT_THAT(inside, HasSubstr("\n1000,"));
  EXPECT_THAT(inside, HasSubstr("ROLLBACK\n7,"));
  EXPECT_THAT(Ask("CREATE TEMP TABLE mine AS SELECT 5.0::float8 AS x;\n"
                  "SELECT x FROM mine TO PREDICT USING m;"),
              HasSubstr("\n5,"));
  EXPECT_THAT(Ask("SET app.x = '9'; SELECT current_setting('app.x')::float8 AS x TO PREDICT USING "
                  "m;"),
              HasSubstr("\n9,"));
}

TEST_F(FewRowsDoorTest, AModelIsTheOneThatThereIsNow) {
  EXPECT_THAT(Ask(kOne), HasSubstr("7,"));
  Train("1000 + y");
  EXPECT_THAT(Ask(kOne), HasSubstr("7,1000."));
  EXPECT_THAT(Ask("ALTER MODEL m ROLLBACK;\n" + std::string(kOne)), Not(HasSubstr("7,1000.")));
  EXPECT_THAT(Ask("DROP MODEL m;\n" + std::string(kOne)), HasSubstr("42704"));
}

TEST_F(FewRowsDoorTest, RightsCountAtOnce) {
  const std::string other = fmt::format("other_{}", getpid());
  Direct(fmt::format("CREATE ROLE {0} LOGIN; GRANT SELECT ON points TO {0}", other));
  EXPECT_THAT(Psql(kOne, "-At", other).output, HasSubstr("42704"));
  Ask(fmt::format("GRANT USAGE ON MODEL m TO {};", other));
  EXPECT_THAT(Psql(kOne, "-At", other).output, HasSubstr("7|"));
  Ask(fmt::format("REVOKE USAGE ON MODEL m FROM {};", other));
  EXPECT_THAT(Psql(kOne, "-At", other).output, HasSubstr("42704"));
  Direct(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", other));
}

// The server estimates one row, and the function makes many: they are all there.
TEST_F(FewRowsDoorTest, AnEstimateThatIsWrongCostsNoRow) {
  Direct(
      "CREATE FUNCTION many() RETURNS SETOF float8 ROWS 1 LANGUAGE sql AS "
      "'SELECT i::float8 FROM generate_series(1, 30000) AS i'");
  EXPECT_EQ(RunInShell(fmt::format("psql -XAt '{}' -c \"SELECT x FROM many() AS x TO PREDICT USING "
                                   "m\" | wc -l",
                                   Conninfo()))
                .output,
            "30000\n");
}

TEST_F(FewRowsDoorTest, ErrorsAreThoseOfManyRows) {
  EXPECT_THAT(Ask("SELECT z FROM points WHERE id = 7 TO PREDICT USING m;"), HasSubstr("42703"));
  EXPECT_THAT(Ask("SELECT 1 / 0 AS x TO PREDICT USING m;"), HasSubstr("22012"));
  EXPECT_THAT(Ask("SELECT 'a' AS x TO PREDICT USING m;"), HasSubstr("ERROR"));
  EXPECT_THAT(
      Ask("SET statement_timeout = '200ms';\nSELECT x FROM points, pg_sleep(10) WHERE id = 7"
          " TO PREDICT USING m;"),
      HasSubstr("57014"));
}

}  // namespace
}  // namespace sluice
