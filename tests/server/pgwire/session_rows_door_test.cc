#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/pgwire/door_fixture.h"

// The rows that a statement of ours reads: those that its session would.
namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(DoorTest, AStatementSeesWhatItsSessionSees) {
  Start();
  const std::string rows = " | grep -c '^  *m '";
  const ShellOutcome seen = Psql(
      "SELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO m;\n"
      "CREATE TEMP TABLE mine AS SELECT * FROM points LIMIT 40;\n"
      "SELECT * FROM mine TO TRAIN xgboost.gbtree LABEL y INTO m;\n"
      "CREATE SCHEMA other; CREATE TABLE other.points AS SELECT * FROM points LIMIT 30;\n"
      "SET search_path = other;\nSELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO "
      "m;\nRESET search_path;\n"
      "SET app.least = '280';\n"
      "SELECT * FROM points WHERE x > current_setting('app.least')::int TO TRAIN xgboost.gbtree "
      "LABEL y INTO m;\n"
      "BEGIN;\nDELETE FROM points WHERE x > 10;\nSELECT * FROM points TO TRAIN xgboost.gbtree "
      "LABEL y INTO m;\n"
      "SHOW lock_timeout;\nSHOW search_path;\n"
      "SELECT x FROM points TO PREDICT scored.y USING m;\nSELECT count(*) FROM scored;\n"
      "ROLLBACK;\n",
      "-At");
  EXPECT_THAT(seen.output, HasSubstr("m|1|1|xgboost.gbtree|300|"));
  EXPECT_THAT(seen.output, HasSubstr("|xgboost.gbtree|40|"));
  EXPECT_THAT(seen.output, HasSubstr("|xgboost.gbtree|30|"));
  EXPECT_THAT(seen.output, HasSubstr("|xgboost.gbtree|20|"));
  EXPECT_THAT(seen.output, HasSubstr("|xgboost.gbtree|10|"));
  EXPECT_THAT(seen.output, HasSubstr("\n0\n\"$user\", public\n"));  // as they were
  EXPECT_THAT(seen.output, HasSubstr("\n10\nROLLBACK"));
  EXPECT_THAT(seen.output, HasSubstr("WARNING:  01000: the model stays"));
  EXPECT_THAT(seen.output, Not(HasSubstr("ERROR")));
  EXPECT_EQ(Direct("SELECT to_regclass('scored') IS NULL, count(*) FROM points").output, "t|300\n");
}

TEST_F(DoorTest, ASelectThatWritesIsToldWhatToDo) {
  Start();
  ASSERT_EQ(Direct("CREATE SEQUENCE numbers").exit_code, 0);
  const std::string hint = "HINT:  the rows of a statement are read in read-only transactions";
  EXPECT_THAT(
      Psql("SELECT x, y, nextval('numbers') AS n FROM points TO TRAIN xgboost.gbtree LABEL y "
           "INTO m;")
          .output,
      AllOf(HasSubstr("ERROR:  25006: cannot execute nextval()"), HasSubstr(hint)));
  EXPECT_THAT(
      Psql("SELECT x, y FROM points FOR UPDATE TO TRAIN xgboost.gbtree LABEL y INTO m;").output,
      AllOf(HasSubstr("ERROR:  25006: cannot execute SELECT FOR UPDATE"), HasSubstr(hint)));
}

// A function may hide behind an operator or an aggregate.
TEST_F(DoorTest, WhatCallsAFunctionOfTheSessionsIsReadThroughIt) {
  Start();
  ASSERT_EQ(
      Direct("CREATE FUNCTION beyond(a float8, b float8) RETURNS bool LANGUAGE plpgsql STABLE"
             " AS 'BEGIN RETURN a > b; END';"
             "CREATE OPERATOR ==> (LEFTARG = float8, RIGHTARG = float8, FUNCTION = beyond);"
             "CREATE FUNCTION more(a float8, b float8) RETURNS float8 LANGUAGE plpgsql VOLATILE"
             " AS 'BEGIN RETURN a + b; END';"
             "CREATE AGGREGATE total (float8) (SFUNC = more, STYPE = float8, INITCOND = 0)")
          .exit_code,
      0);
  const std::string heard =
      Psql(
          "SELECT * FROM points WHERE x ==> 280.0::float8 TO TRAIN xgboost.gbtree LABEL y INTO m;\n"
          "SELECT total(x::float8) AS x, y FROM points GROUP BY x, y LABEL y INTO n;\n"
          "SELECT sum(x) AS x, y FROM points WHERE x > 280.0 GROUP BY x, y TO TRAIN xgboost.gbtree "
          "LABEL y INTO o;",
          "-At")
          .output;
  EXPECT_THAT(heard, HasSubstr("through this session: it uses the operator ==>, which is not "
                               "IMMUTABLE"));
  EXPECT_THAT(heard, HasSubstr("|xgboost.gbtree|20|"));
  EXPECT_THAT(heard, HasSubstr("through this session: it calls total(), which is not IMMUTABLE"));
  EXPECT_THAT(heard.substr(heard.find("total()") + 7), Not(HasSubstr("through this session")));
}

// The server's own functions, too: on another connection they would give something else.
TEST_F(DoorTest, WhatDependsOnItsBackEndIsReadThroughTheSession) {
  Start();
  const std::string train = " TO TRAIN xgboost.gbtree LABEL y INTO m;\n";
  const std::string heard =
      Psql(
          "CREATE TABLE mine AS SELECT x, y, pg_backend_pid() AS pid, now() AS at FROM points;\n"
          "SELECT x, y FROM mine WHERE pid = pg_backend_pid()" +
              train + "SELECT x, y FROM mine WHERE at <= transaction_timestamp()" + train,
          "-At")
          .output;
  EXPECT_THAT(heard, HasSubstr("through this session: it calls pg_backend_pid(), which is not"
                               " IMMUTABLE"));
  EXPECT_THAT(heard, HasSubstr("through this session: it calls transaction_timestamp()"));
  EXPECT_THAT(heard, HasSubstr("\nm|2|2|xgboost.gbtree|300|"));
}

// Statistics, every epoch and validation have the rows of one SELECT.
TEST_F(DoorTest, AVolatileSelectIsProducedOnce) {
  Start();
  ASSERT_EQ(Direct("CREATE FUNCTION told(float8) RETURNS float8 LANGUAGE plpgsql VOLATILE"
                   " AS 'BEGIN RAISE NOTICE ''called at %'', clock_timestamp(); RETURN \\$1; END'")
                .exit_code,
            0);
  const std::string heard =
      Psql(
          "SELECT told(x) AS x, y FROM points WHERE x <= 20 TO TRAIN LinearClassifier"
          " WITH train.epoch=3 LABEL y INTO m;",
          "-At")
          .output;
  size_t calls = 0;
  for (size_t at = heard.find("called at "); at != std::string::npos;
       at = heard.find("called at ", at + 1)) {
    ++calls;
  }
  EXPECT_EQ(calls, 20U) << heard;
}

TEST_F(DoorTest, RowsThatAPolicyHidesAreHiddenFromTrainings) {
  if (Direct("CREATE ROLE door_tenant LOGIN").output.find("exists") == std::string::npos) {
    Direct("SELECT 1");
  }
  ASSERT_EQ(Direct("GRANT SELECT ON points TO door_tenant; ALTER TABLE points ENABLE ROW LEVEL "
                   "SECURITY; CREATE POLICY own ON points USING (x <= "
                   "current_setting('app.tenant')::float8)")
                .exit_code,
            0);
  Start();
  const ShellOutcome seen = Psql(
      "SET app.tenant = '60';\nSELECT count(*) FROM points;\nSELECT * FROM points TO TRAIN "
      "xgboost.gbtree LABEL y INTO "
      "tenants;\nEXPLAIN SELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO tenants;\n",
      "-At", "door_tenant");
  EXPECT_THAT(seen.output, HasSubstr("\n60\n"));
  EXPECT_THAT(seen.output, HasSubstr("|xgboost.gbtree|60|")) << seen.output;
  EXPECT_THAT(seen.output, HasSubstr("through the session"));
  // A role cannot train on what it cannot read; and other roles do not see its model.
  EXPECT_THAT(
      Psql("SELECT rolname, oid FROM pg_authid LABEL oid INTO stolen;", "", "door_tenant").output,
      HasSubstr("42501"));
  Direct("CREATE ROLE door_other LOGIN");
  Direct("GRANT SELECT ON points TO door_other");
  EXPECT_THAT(Psql("SELECT 1.0 AS x TO PREDICT USING tenants;", "", "door_other").output,
              HasSubstr("42704"));
  EXPECT_THAT(Psql("GRANT USAGE ON MODEL tenants TO door_other;", "", "door_tenant").output,
              HasSubstr("GRANT"));
  EXPECT_THAT(Psql("SELECT 1.0 AS x TO PREDICT USING tenants;", "", "door_other").output,
              HasSubstr("(1 row)"));
  EXPECT_THAT(Psql("DROP MODEL tenants;", "", "door_other").output, HasSubstr("42501"));
}

}  // namespace
}  // namespace sluice
