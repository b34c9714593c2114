#include <gmock/gmock.h>

#include <string>

#include "tests/server/pgwire/door_fixture.h"

// What another role makes in the database changes neither how a role's statements are read nor how
// long they take.
namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OthersObjects : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    ASSERT_EQ(
        Direct("CREATE ROLE others_ann LOGIN; CREATE ROLE others_bob LOGIN;"
               " GRANT SELECT ON points TO others_ann;"
               " CREATE SCHEMA bob AUTHORIZATION others_bob; GRANT USAGE ON SCHEMA bob TO PUBLIC")
            .exit_code,
        0);
    Start();
  }
  void TearDown() override {
    if (!IsSkipped()) {
      gateway_.reset();
      for (const char* const role : {"others_ann", "others_bob"}) {
        Direct(fmt::format("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", role));
      }
    }
    DoorTest::TearDown();
  }
  void Bob(const std::string& sql) const {
    const ShellOutcome done =
        RunInShell(fmt::format("psql -XAtq -v ON_ERROR_STOP=1 '{}' <<'END' 2>&1\n"
                               "SET ROLE others_bob;\n{}\nEND",
                               database_.url(), sql));
    ASSERT_EQ(done.exit_code, 0) << done.output;
  }
  std::string Ann(const std::string& select) const {
    return Psql(select + " TO TRAIN xgboost.gbtree LABEL y INTO m", "-At", "others_ann").output;
  }
};

TEST_F(OthersObjects, OfTheSameNamesAreNotMeant) {
  Bob("CREATE FUNCTION bob.abs(float8) RETURNS float8 LANGUAGE plpgsql VOLATILE"
      " AS $$ BEGIN RETURN $1; END $$;\n"
      "CREATE FUNCTION bob.more(float8, float8) RETURNS bool LANGUAGE plpgsql VOLATILE"
      " AS $$ BEGIN RETURN true; END $$;\n"
      "CREATE OPERATOR bob.> (LEFTARG = float8, RIGHTARG = float8, FUNCTION = bob.more);\n"
      "CREATE TYPE bob.pair AS (a int, b int);\n"
      "CREATE FUNCTION bob.pair_to_int(bob.pair) RETURNS int LANGUAGE plpgsql VOLATILE"
      " AS $$ BEGIN RETURN 1; END $$;\n"
      "CREATE CAST (bob.pair AS int) WITH FUNCTION bob.pair_to_int AS IMPLICIT;\n"
      "CREATE DOMAIN bob.small AS float8 CHECK (bob.more(VALUE, 1));");
  const std::string heard = Ann("SELECT abs(x) AS x, y FROM points WHERE x > 20.0");
  EXPECT_THAT(heard, HasSubstr("|xgboost.gbtree|280|"));
  EXPECT_THAT(heard, Not(HasSubstr("through this session")));
}

TEST_F(OthersObjects, CountWhereTheyAreCalled) {
  Bob("CREATE FUNCTION bob.abs(float8) RETURNS float8 LANGUAGE plpgsql VOLATILE"
      " AS $$ BEGIN RETURN $1; END $$;\n"
      "CREATE FUNCTION bob.more(float8, float8) RETURNS bool LANGUAGE plpgsql VOLATILE"
      " AS $$ BEGIN RETURN $1 > $2; END $$;\n"
      "CREATE OPERATOR bob.> (LEFTARG = float8, RIGHTARG = float8, FUNCTION = bob.more);");
  EXPECT_THAT(Ann("SELECT bob.abs(x) AS x, y FROM points"),
              HasSubstr("through this session: it calls abs(), which is not IMMUTABLE"));
  EXPECT_THAT(Ann("SELECT x, y FROM points WHERE x OPERATOR(bob.>) 20.0::float8"),
              HasSubstr("through this session: it uses the operator >, which is not IMMUTABLE"));
}

// A domain of another role's that a column has is the column's.
TEST_F(OthersObjects, CountAsTheTypeOfAColumn) {
  Bob("CREATE FUNCTION bob.fine(float8) RETURNS bool LANGUAGE plpgsql VOLATILE"
      " AS $$ BEGIN RETURN true; END $$;\n"
      "CREATE DOMAIN bob.small AS float8 CHECK (bob.fine(VALUE));\n"
      "CREATE TABLE bob.sizes (x bob.small, y int);\n"
      "INSERT INTO bob.sizes SELECT i, i % 2 FROM generate_series(1, 40) AS i;\n"
      "GRANT SELECT ON bob.sizes TO PUBLIC;");
  EXPECT_THAT(Ann("SELECT x, y FROM bob.sizes"),
              HasSubstr("through this session: it may check a domain by fine()"));
}

// Functions are searched for the names of settings: the administrator's whatever others have filled
// the database with, and of those no more than some kilobytes.
TEST_F(OthersObjects, HideNoSettingOfAPolicy) {
  ASSERT_EQ(
      Direct("CREATE FUNCTION most_of_tenant() RETURNS float8 LANGUAGE plpgsql STABLE LEAKPROOF AS"
             " 'BEGIN RETURN current_setting(''app.tenant''); END';"
             " ALTER TABLE points ENABLE ROW LEVEL SECURITY;"
             " CREATE POLICY own ON points USING (x <= most_of_tenant())")
          .exit_code,
      0);
  Bob("SELECT format('CREATE FUNCTION bob.f%s() RETURNS text LANGUAGE plpgsql AS %L', i,"
      " 'BEGIN RETURN ' || quote_literal(repeat('''a.b'' ', 20000)) || '; END')"
      " FROM generate_series(1, 20) AS i \\gexec");
  const std::string heard =
      Psql("SET app.tenant = '60';\nSELECT * FROM points TO TRAIN xgboost.gbtree LABEL y INTO m",
           "-At", "others_ann")
          .output;
  EXPECT_THAT(heard, HasSubstr("|xgboost.gbtree|60|"));
}

// PostgreSQL stores bodies, policies and views of up to 4,000 calls within each other, but cannot
// show them as SQL (54001). What is stored beside them is read all the same.
TEST_F(OthersObjects, MayBeTooDeepToBeShown) {
  Bob("SELECT format('CREATE %s ' || repeat('lower(', 4000) || quote_literal('a.b') ||"
      " repeat(')', 4000), head) FROM unnest(ARRAY['FUNCTION bob.deep() RETURNS text RETURN',"
      " 'VIEW bob.deeper AS SELECT current_setting(''a.c'', true) ||']) AS head \\gexec");
  EXPECT_EQ(Direct("SELECT pg_get_function_sqlbody('bob.deep'::regproc)").exit_code, 1);
  ASSERT_EQ(Direct("CREATE FUNCTION most() RETURNS float8 STABLE LEAKPROOF"
                   " RETURN current_setting('app.tenant')::float8;"
                   " CREATE VIEW least AS SELECT current_setting('app.least')::float8 AS x;"
                   " GRANT SELECT ON least TO others_ann;"
                   " ALTER TABLE points ENABLE ROW LEVEL SECURITY;"
                   " CREATE POLICY own ON points USING (x <= most() AND x <= "
                   "current_setting('app.other')::float8)")
                .exit_code,
            0);
  const auto rows = [&](const std::string& settings) {
    return Psql(settings +
                    "SELECT * FROM points WHERE x > (SELECT l.x FROM least AS l) TO TRAIN "
                    "xgboost.gbtree LABEL y INTO m",
                "-At", "others_ann")
        .output;
  };
  EXPECT_THAT(rows("SET app.tenant = '60'; SET app.least = '10'; SET app.other = '90';\n"),
              HasSubstr("|xgboost.gbtree|50|"));
  EXPECT_THAT(rows("SET app.tenant = '60'; SET app.least = '20'; SET app.other = '50';\n"),
              HasSubstr("|xgboost.gbtree|30|"));
}

// A domain's checks run as whoever writes a value, which neither SELECT nor CREATE TABLE AS does.
TEST_F(OthersObjects, DoNotRunWhereTheirValuesArePassedOn) {
  Bob("CREATE TABLE bob.ran (who text, what float8); GRANT INSERT ON bob.ran TO PUBLIC;\n"
      "CREATE FUNCTION bob.sees(float8) RETURNS bool LANGUAGE plpgsql VOLATILE AS $$ BEGIN"
      " IF current_user <> 'others_bob' THEN INSERT INTO bob.ran VALUES (current_user, $1);"
      " END IF; RETURN true; END $$;\n"
      "CREATE DOMAIN bob.inside AS float8 CHECK (bob.sees(VALUE));\n"
      "CREATE DOMAIN bob.small AS bob.inside; CREATE TYPE bob.pair AS (a bob.small, b int);\n"
      "CREATE TABLE bob.given (x float8, d bob.small, p bob.pair, l bob.small[]);\n"
      "INSERT INTO bob.given SELECT i, i, (i::bob.small, i)::bob.pair,"
      " ARRAY[i::bob.small] FROM generate_series(1, 5) i;\n"
      "GRANT SELECT ON bob.given TO PUBLIC;");
  Direct("GRANT CREATE ON SCHEMA public TO others_ann");
  const std::string all = "SELECT * FROM bob.given TO PREDICT ";
  const std::string heard =
      Psql("SELECT x, y FROM points TO TRAIN LinearClassifier LABEL y INTO m;\n" + all +
               "public.scored.y USING m;\n" + all +
               "public.scored.y USING m;\n"  // once more
               "COPY (" +
               all +
               "y USING m) TO STDOUT;\n"
               "BEGIN; DECLARE c CURSOR FOR " +
               all + "y USING m; FETCH ALL FROM c; COMMIT;\n" + all +
               "y USING m;\n"
               "SELECT d + 0.5, p::text, l::text FROM public.scored ORDER BY 1 LIMIT 1;\n",
           "-Atq", "others_ann")
          .output;
  EXPECT_THAT(heard, Not(HasSubstr("ERROR")));
  EXPECT_THAT(heard, HasSubstr("1.5|(1,1)|{1}"));
  EXPECT_EQ(Direct("SELECT who, what FROM bob.ran").output, "");
}

}  // namespace
}  // namespace sluice
