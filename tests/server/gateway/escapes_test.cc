#include <gmock/gmock.h>

#include "catalog/catalog.h"
#include "tests/server/gateway/two_users.h"

// Whatever SELECT refuses to a user, or hides from them, extended statements refuse and hide, too.
namespace sluice::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Escapes : public TwoUsers {
 protected:
  void SetUp() override {
    TwoUsers::SetUp();
    if (IsSkipped() || HasFatalFailure()) {
      return;
    }
    Admin("CREATE SCHEMA shared");
    Admin("GRANT USAGE, CREATE ON SCHEMA shared TO " + ann_ + ", " + bob_);
    // Rows of both users: 100 of ann's, whose words are her secrets, and 40 of bob's.
    MustRun(ann_,
            "CREATE TABLE shared.notes AS SELECT i AS id, i % 7 AS a, i % 2 AS y,"
            " CASE WHEN i <= 100 THEN '" +
                ann_ + "' ELSE '" + bob_ +
                "' END AS owner,"
                " CASE WHEN i <= 100 THEN 'hers' || i % 4 ELSE 'his' || i % 4 END AS word"
                " FROM generate_series(1, 140) AS i; ANALYZE shared.notes;"
                " ALTER TABLE shared.notes ENABLE ROW LEVEL SECURITY;"
                " CREATE POLICY own ON shared.notes USING (owner = current_user);"
                " CREATE TABLE shared.hidden AS SELECT * FROM shared.notes;"
                " GRANT SELECT ON shared.notes TO " +
                bob_);
    MustRun(bob_,
            "CREATE TABLE plain AS SELECT i % 7 AS a, i % 2 AS y, 'w' || i % 4 AS word"
            " FROM generate_series(1, 60) AS i;"
            " SELECT a, word, y FROM plain TO TRAIN LinearClassifier WITH train.epoch=1"
            " LABEL y INTO his");
  }

  // One of each kind of statement over the select, which has the columns a, word and y.
  static std::vector<std::string> StatementsOver(const std::string& select) {
    return {select +
                " TO TRAIN LinearClassifier WITH train.epoch=1, split.kind='none' LABEL y INTO "
                "tried",
            select + " TO PREDICT seen.y USING his", select + " TO EVALUATE his",
            "EXPLAIN " + select +
                " TO TRAIN LinearClassifier WITH train.epoch=1, split.kind='none' LABEL y INTO "
                "tried"};
  }

  // If bob may not SELECT it, all other statements refuse it, too, for the same reason.
  void ExpectRefused(const std::string& select, const std::string& sqlstate) {
    const Status plain = Run(bob_, select);
    ASSERT_EQ(plain.sqlstate(), sqlstate) << select << "\n" << plain.ToString();
    for (const std::string& statement : StatementsOver(select)) {
      const Status status = Run(bob_, statement);
      EXPECT_EQ(status.sqlstate(), sqlstate) << statement << "\n" << status.ToString();
    }
  }

  // Bob's statements process `rows` rows, none of them ann's. `before`: earlier in the script.
  void ExpectRows(const std::string& select, int64_t rows, const std::string& before = "") {
    RecordingSink plain;
    const Status selected =
        Run(bob_, before + "SELECT count(*) AS n FROM (" + select + ") s", plain);
    ASSERT_TRUE(selected.ok()) << selected.ToString();
    ASSERT_EQ(plain.rows.back()[0], Value(rows)) << select;
    const std::vector<std::string> statements = StatementsOver(select);
    RecordingSink trained;
    Status status = Run(bob_, before + statements[0], trained);
    ASSERT_TRUE(status.ok()) << statements[0] << "\n" << status.ToString();
    EXPECT_EQ(trained.Number("rows"), static_cast<double>(rows)) << select;
    RecordingSink predicted;
    status = Run(bob_, before + statements[1], predicted);
    ASSERT_TRUE(status.ok()) << statements[1] << "\n" << status.ToString();
    EXPECT_EQ(predicted.Number("rows"), static_cast<double>(rows)) << select;
    RecordingSink explained;
    status = Run(bob_, before + statements[3], explained);
    ASSERT_TRUE(status.ok()) << statements[3] << "\n" << status.ToString();
    std::string text;
    for (const auto& row : explained.rows) {
      text += std::get<std::string>(row[0]) + "\n";
    }
    EXPECT_THAT(text, Not(HasSubstr("hers"))) << "the statistics tell of rows that are hidden";
    RecordingSink model;
    status = Run(bob_,
                 "DESCRIBE MODEL tried; SELECT encode(plan, 'escape') AS plan FROM "
                 "sluice.model_versions WHERE name = 'tried' AND live",
                 model);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_THAT(std::get<std::string>(model.rows.back().back()), Not(HasSubstr("hers")));
  }
};

TEST_F(Escapes, RowLevelSecurityHidesRows) {
  ExpectRows("SELECT a, word, y FROM shared.notes", 40);
  ExpectRows("SELECT a, word, y FROM shared.notes WHERE owner <> 'x' ORDER BY id", 40);
}

TEST_F(Escapes, WhatWasNotGrantedIsRefused) {
  ExpectRefused("SELECT a, word, y FROM shared.hidden", "42501");
  ExpectRefused("SELECT 1 AS a, rolpassword AS word, 0 AS y FROM pg_catalog.pg_authid", "42501");
  ExpectRefused("SELECT 1 AS a, pg_read_file('PG_VERSION') AS word, 0 AS y", "42501");
}

TEST_F(Escapes, ColumnsThatWereNotGrantedAreRefused) {
  MustRun(ann_,
          "CREATE TABLE shared.wages AS SELECT i % 7 AS a, i % 2 AS y, 'w' || i % 3 AS word,"
          " i AS wage FROM generate_series(1, 50) AS i;"
          " GRANT SELECT (a, y, word) ON shared.wages TO " +
              bob_);
  ExpectRows("SELECT a, word, y FROM shared.wages", 50);
  ExpectRefused("SELECT wage AS a, word, y FROM shared.wages", "42501");
  ExpectRefused("SELECT a, word, y FROM shared.wages WHERE wage > 3", "42501");
  ExpectRefused("SELECT * FROM shared.wages", "42501");
}

TEST_F(Escapes, NoRoleButTheirOwn) {
  const std::string rows = "SELECT a, word, y FROM shared.notes";
  for (const std::string& role : {ann_, std::string("postgres")}) {
    ExpectRefused("SELECT n.a, n.word, n.y FROM (SELECT set_config('role', '" + role +
                      "', false)) AS r, LATERAL (" + rows + ") AS n",
                  "42501");
    ExpectRefused("SELECT n.a, n.word, n.y FROM (SELECT set_config('session_authorization', '" +
                      role + "', false)) AS r, LATERAL (" + rows + ") AS n",
                  "42501");
  }
  // No other role is behind these connections, so nothing can switch back to one.
  ExpectRows(
      "SELECT n.a, n.word, n.y FROM (SELECT set_config('role', 'none', false)) AS r, LATERAL "
      "(" +
          rows + ") AS n",
      40);
  for (const char* sql : {"SET ROLE postgres", "SET SESSION AUTHORIZATION postgres"}) {
    EXPECT_EQ(Run(bob_, sql).sqlstate(), "42501");
  }
  MustRun(bob_, "RESET SESSION AUTHORIZATION; RESET ROLE");
  MustRun(bob_,
          "CREATE FUNCTION become() RETURNS int LANGUAGE plpgsql AS"
          " $$ BEGIN PERFORM set_config('role', '" +
              ann_ + "', false); RETURN 1; END $$");
  ExpectRefused("SELECT n.a, n.word, n.y FROM (SELECT " + bob_ + ".become()) AS r, LATERAL (" +
                    rows + ") AS n",
                "42501");
}

TEST_F(Escapes, FunctionsAndViewsGiveWhatTheirOwnersLetThem) {
  MustRun(ann_,
          "CREATE FUNCTION shared.few() RETURNS SETOF shared.notes LANGUAGE sql SECURITY "
          "DEFINER AS $$ SELECT id, a, y, owner, 'given' AS word FROM shared.notes "
          "WHERE id <= 30 $$;"
          " CREATE VIEW shared.view AS SELECT a, y, 'given' AS word FROM shared.notes"
          " WHERE id <= 25; GRANT SELECT ON shared.view TO " +
              bob_ +
              ";"
              " CREATE VIEW shared.asks WITH (security_invoker = true) AS"
              " SELECT a, word, y FROM shared.notes; GRANT SELECT ON shared.asks TO " +
              bob_);
  ExpectRows("SELECT a, word, y FROM shared.few()", 30);
  ExpectRows("SELECT a, word, y FROM shared.view", 25);
  ExpectRows("SELECT a, word, y FROM shared.asks", 40);
  MustRun(bob_,
          "CREATE FUNCTION mine() RETURNS SETOF shared.notes LANGUAGE sql SECURITY DEFINER AS"
          " $$ SELECT * FROM shared.notes $$;"
          " CREATE VIEW my AS SELECT a, word, y FROM shared.hidden");
  ExpectRows("SELECT a, word, y FROM " + bob_ + ".mine()", 40);
  ExpectRefused("SELECT a, word, y FROM " + bob_ + ".my", "42501");
}

// A function that replaces the server's own records who calls it.
TEST_F(Escapes, NobodysFunctionsRunForTheGatewayOrForOthers) {
  MustRun(bob_,
          "CREATE TABLE shared.calls (who text, what text);"
          " GRANT INSERT ON shared.calls TO PUBLIC");
  for (const std::string signature :
       {"lower(text)", "pg_has_role(name, oid, text)", "pg_has_role(text, oid, text)",
        "to_timestamp(double precision)", "array_append(text[], text)"}) {
    const std::string name = signature.substr(0, signature.find('('));
    const std::string type = name == "lower"          ? "text"
                             : name == "to_timestamp" ? "timestamptz"
                             : name == "array_append" ? "text[]"
                                                      : "boolean";
    MustRun(bob_, "CREATE FUNCTION shared." + signature + " RETURNS " + type +
                      " LANGUAGE plpgsql AS $$ BEGIN INSERT INTO shared.calls VALUES (current_user,"
                      " '" +
                      name + "'); RETURN NULL; END $$");
  }
  MustRun(bob_,
          "CREATE FUNCTION shared.same(text, text) RETURNS boolean LANGUAGE plpgsql AS"
          " $$ BEGIN INSERT INTO shared.calls VALUES (current_user, '='); RETURN true; END $$;"
          " CREATE OPERATOR shared.= (LEFTARG = text, RIGHTARG = text,"
          " FUNCTION = shared.same)");
  for (const std::string type : {"oid", "name", "bigint", "integer", "\"char\"", "text"}) {
    for (const std::string symbol : {"=", "<>", "||"}) {
      if (type == "text" && symbol != "||") {
        continue;
      }
      const std::string name = symbol == "=" ? "equal" : symbol == "<>" ? "unequal" : "joined";
      MustRun(bob_, "CREATE FUNCTION shared." + name + "(" + type + ", " + type + ") RETURNS " +
                        (symbol == "||" ? "text" : "boolean") +
                        " LANGUAGE plpgsql AS $$ BEGIN INSERT INTO shared.calls VALUES"
                        " (current_user, '" +
                        symbol + " " + type + "'); RETURN NULL; END $$; CREATE OPERATOR shared." +
                        symbol + " (LEFTARG = " + type + ", RIGHTARG = " + type +
                        ", FUNCTION = shared." + name + ")");
    }
  }
  // A minimal setup: the path of all who connect begins there.
  const std::string database = database_.url().substr(database_.url().rfind('/') + 1);
  Admin("ALTER DATABASE " + database + " SET search_path = shared, pg_catalog, public");
  gateway_.reset();
  Start();
  MustRun(ann_, "CREATE TABLE " + ann_ +
                    ".rows AS SELECT i % 7 AS a, i % 2 AS y"
                    " FROM generate_series(1, 60) AS i;"
                    " SELECT a, y FROM " +
                    ann_ +
                    ".rows TO TRAIN LinearClassifier WITH train.epoch=1"
                    " LABEL y INTO m; SHOW MODELS; SHOW JOBS; SHOW JOB 2; DESCRIBE MODEL m;"
                    " SELECT a, y, 'w' COLLATE \"C\" AS w FROM " +
                    ann_ + ".rows TO PREDICT " + ann_ + ".scored.p USING m; SELECT a, y FROM " +
                    ann_ + ".rows TO PREDICT " + ann_ + ".scored2.p USING m; SELECT a, y FROM " +
                    ann_ + ".rows TO PREDICT " + ann_ +
                    ".scored2.p USING m; SELECT a, random() AS r, y FROM " + ann_ +
                    ".rows TO PREDICT " + ann_ + ".scored3.p USING m");
  MustRun(ann_, "GRANT USAGE ON MODEL m TO " + bob_ + "; REVOKE USAGE ON MODEL m FROM " + bob_ +
                    "; DROP MODEL m");
  RecordingSink calls;
  const Status looked = Run(bob_,
                            "SELECT count(*) AS n FROM shared.calls WHERE who <> '" + bob_ +
                                "'::name::varchar COLLATE \"C\"",
                            calls);
  ASSERT_TRUE(looked.ok()) << looked.ToString();
  RecordingSink all;
  ASSERT_TRUE(Run(bob_, "SELECT who, what FROM shared.calls", all).ok());
  for (const auto& row : all.rows) {
    ADD_FAILURE() << FormatValue(row[0], DataType::kText) << " called "
                  << FormatValue(row[1], DataType::kText);
  }
}

TEST_F(Escapes, PoliciesOnSettingsFollowTheSession) {
  MustRun(
      ann_,
      "CREATE TABLE shared.tenants AS SELECT i % 7 AS a, i % 2 AS y, 't' || i / 2 % 2 AS tenant,"
      " CASE WHEN i / 2 % 2 = 0 THEN 'hers' ELSE 'his' END AS word"
      " FROM generate_series(1, 91) AS i;"
      " ALTER TABLE shared.tenants ENABLE ROW LEVEL SECURITY;"
      " CREATE POLICY t ON shared.tenants USING (tenant = current_setting('app.tenant',"
      " true)); GRANT SELECT ON shared.tenants TO " +
          bob_);
  ExpectRows("SELECT a, word, y FROM shared.tenants", 46, "SET app.tenant = 't1'; ");
  const Status none = Run(bob_, "SELECT a, word, y FROM shared.tenants TO EVALUATE his");
  EXPECT_EQ(none.sqlstate(), "02000") << none.ToString();
}

TEST_F(Escapes, AnothersModelsAndJobsAreNotThere) {
  MustRun(ann_,
          "SELECT a, word, y FROM shared.notes TO TRAIN LinearClassifier WITH train.epoch=1"
          " LABEL y INTO hers");
  for (const std::string statement :
       {"SELECT a, word, y FROM plain TO PREDICT p.y USING hers",
        "SELECT a, word, y FROM plain TO EVALUATE hers", "DESCRIBE MODEL hers", "SHOW MODEL hers",
        "SHOW TRAIN hers", "DROP MODEL hers", "ALTER MODEL hers ROLLBACK",
        "EXPLAIN SELECT a, word, y FROM plain TO PREDICT p.y USING hers",
        "SELECT a, word, y FROM plain TO TRAIN LinearClassifier LABEL y USING hers INTO mine",
        "GRANT USAGE ON MODEL hers TO PUBLIC", "SHOW JOB 2", "WAIT JOB 2", "CANCEL JOB 2"}) {
    const Status status = Run(bob_, statement);
    EXPECT_EQ(status.sqlstate(), "42704") << statement << "\n" << status.ToString();
  }
  for (const std::string table :
       {"models", "model_versions", "jobs", "job_events", "job_metrics"}) {
    RecordingSink count;
    const Status status =
        Run(bob_, "SELECT count(*) AS n FROM sluice." + table + " AS t WHERE t::text LIKE '%hers%'",
            count);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(count.Cell("n"), Value(int64_t{0})) << table;
  }
  EXPECT_EQ(Run(bob_, "SELECT * FROM sluice.model_chunks").sqlstate(), "42501");
  EXPECT_EQ(Run(bob_,
                "SELECT bytes AS a, 1 AS y FROM sluice.model_chunks TO TRAIN "
                "LinearClassifier LABEL y INTO stolen")
                .sqlstate(),
            "42501");
}

TEST_F(Escapes, AResultIsWrittenAsTheUser) {
  MustRun(ann_, "CREATE TABLE shared.target (a int)");
  EXPECT_EQ(Run(bob_, "SELECT a, word FROM plain TO PREDICT shared.target.y USING his").sqlstate(),
            "42P07");
  EXPECT_EQ(Run(bob_,
                "SELECT a, word FROM plain TO PREDICT shared.target.y WITH "
                "result.replace=true USING his")
                .sqlstate(),
            "42501");
  EXPECT_EQ(
      Run(bob_, "SELECT a, word FROM plain TO PREDICT " + ann_ + ".target.y USING his").sqlstate(),
      "42501");
  // A record that bob writes about her table does not make it Sluice's.
  EXPECT_EQ(Run(bob_,
                "INSERT INTO sluice.result_tables SELECT 'shared', 'target',"
                " 'shared.target'::regclass::oid::text, 'a integer', 'predict', 0, 0")
                .sqlstate(),
            "42501");
  MustRun(ann_, "GRANT ALL ON shared.target TO " + bob_);
  MustRun(bob_,
          "INSERT INTO sluice.result_tables SELECT 'shared', 'target',"
          " 'shared.target'::regclass::oid::text, 'a integer', 'predict', 0, 0");
  EXPECT_EQ(Run(ann_, "SELECT 1 AS a TO PREDICT shared.target.y USING his").sqlstate(), "42704");
  MustRun(ann_,
          "SELECT a, word, y FROM shared.notes TO TRAIN LinearClassifier WITH train.epoch=1"
          " LABEL y INTO hers; INSERT INTO shared.target VALUES (1)");
  EXPECT_EQ(Run(ann_, "SELECT a, word FROM shared.notes TO PREDICT shared.target.y USING hers")
                .sqlstate(),
            "42P07");
}

// Tables prepared for the gateway, which is a superuser here, with a trap in them.
TEST_F(Escapes, ACatalogThatAnotherMadeIsNotTouched) {
  gateway_.reset();
  Admin("DROP SCHEMA sluice CASCADE");
  Admin("CREATE SCHEMA sluice AUTHORIZATION " + bob_);
  const Status used =
      catalog::OpenCatalog(database_.url()).value()->jobs().Create(catalog::Job()).status();
  EXPECT_EQ(used.sqlstate(), "42501") << used.ToString();
  EXPECT_THAT(used.message(), HasSubstr(bob_));
  const auto his = catalog::OpenDataSourceAs(database_.url(), bob_, PasswordOf(bob_)).value();
  const auto catalog = catalog::OpenCatalog(his->url(), his->secret()).value();
  ASSERT_TRUE(catalog->jobs().Create(catalog::Job()).ok());
  for (const Status& status :
       {catalog::OpenCatalog(database_.url()).value()->jobs().RequestCancel(1),
        catalog::OpenCatalog(database_.url()).value()->jobs().List().status()}) {
    EXPECT_EQ(status.sqlstate(), "42501") << status.ToString();
  }
}

// A schema that is lent to a gateway's login still belongs to its owner, who may add a trigger to
// any table in it.
TEST_F(Escapes, ASchemaThatAnotherLendsIsNotUsed) {
  gateway_.reset();
  Admin("DROP SCHEMA sluice CASCADE");
  Admin("CREATE SCHEMA sluice AUTHORIZATION " + bob_);
  Admin(fmt::format("GRANT ALL ON SCHEMA sluice TO {}", ann_));
  const auto hers = catalog::OpenDataSourceAs(database_.url(), ann_, PasswordOf(ann_)).value();
  const auto catalog = catalog::OpenCatalog(hers->url(), hers->secret()).value();
  const Status used = catalog->jobs().Create(catalog::Job()).status();
  EXPECT_EQ(used.sqlstate(), "42501") << used.ToString();
  EXPECT_THAT(used.message(), HasSubstr(bob_));
}

}  // namespace
}  // namespace sluice::server
