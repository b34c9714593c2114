#include <gmock/gmock.h>

#include "tests/catalog/both_databases.h"

// Properties of result tables that only PostgreSQL has: rights, row-level security, publications.
namespace sluice::catalog {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Schema OneColumn() {
  return {{{"id", DataType::kInt64, ""}}};
}

class PostgresResultTableTest : public BothDatabases {
 protected:
  bool WritesResults() const override { return true; }
  void SetUp() override {
    BothDatabases::SetUp();
    if (IsSkipped()) {
      return;
    }
    role_ = "scorer_" + url().substr(url().rfind('_') + 1);
    Run("CREATE ROLE " + role_ + " LOGIN PASSWORD 'right'");
    std::string other = url();
    other.replace(other.find("postgres@"), 8, role_);
    auto opened = OpenDataSource(other, "right");
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    scorer_ = std::move(opened).value();
  }
  void TearDown() override {
    scorer_.reset();
    if (!role_.empty()) {
      Run("DROP OWNED BY " + role_);
      Run("DROP ROLE " + role_);
    }
    BothDatabases::TearDown();
  }

  static Status Write(DataSource& to, int64_t rows, bool replace = false,
                      const Schema& schema = OneColumn()) {
    ResultTable table;
    table.name = {"public", "p"};
    table.kind = "predict";
    table.replace = replace;
    ASSIGN_OR_RETURN(const auto writer, to.OpenWriter(table, schema));
    RowBatch batch;
    batch.Reset(schema, static_cast<size_t>(rows));
    batch.rows = static_cast<size_t>(rows);
    for (RowBatch::Column& column : batch.columns) {
      for (size_t row = 0; row < batch.rows; ++row) {
        column.null[row] = 0;
        column.int64s[row] = static_cast<int64_t>(row);
      }
    }
    RETURN_IF_ERROR(writer->Write(batch));
    return writer->Commit({});
  }
  Status Write(int64_t rows, bool replace = false, const Schema& schema = OneColumn()) {
    return Write(source(), rows, replace, schema);
  }
  Status Plan(DataSource& from) {
    ResultTable table;
    table.name = {"public", "p"};
    const Schema schema = OneColumn();
    return from.PlanResultTable(table, &schema).status();
  }
  std::string CountAs(DataSource& reader) {
    const auto dataset = reader.OpenDataset("SELECT count(*) FROM p", {});
    EXPECT_TRUE(dataset.ok()) << dataset.status().ToString();
    return dataset.ok() ? ReadAll(reader, (*dataset)->spec())->at(0)[0] : "";
  }
  void LetScorerWrite() {
    Run("GRANT USAGE ON SCHEMA sluice TO " + role_);
    Run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA sluice TO " + role_);
  }

  std::string role_;
  std::unique_ptr<DataSource> scorer_;
};

TEST_P(PostgresResultTableTest, RefillingKeepsWhatHangsOnTheTable) {
  ASSERT_TRUE(Write(3).ok());
  const std::string oid = Select("SELECT 'p'::regclass::oid")[0][0];
  Run("GRANT SELECT ON p TO " + role_);
  Run("GRANT UPDATE (id) ON p TO " + role_);
  Run("ALTER TABLE p ENABLE ROW LEVEL SECURITY");
  Run("CREATE POLICY none ON p FOR SELECT TO " + role_ + " USING (id < 0)");
  Run("COMMENT ON TABLE p IS 'scores'");
  Run("COMMENT ON COLUMN p.id IS 'whose'");
  Run("ALTER TABLE p ADD CONSTRAINT small CHECK (id < 100)");
  Run("ALTER TABLE p ADD PRIMARY KEY (id)");
  Run("CREATE PUBLICATION changes FOR TABLE p");
  Run("CREATE VIEW seen AS SELECT id FROM p");
  EXPECT_EQ(CountAs(*scorer_), "0");
  const Status refilled = Write(5);
  ASSERT_TRUE(refilled.ok()) << refilled.ToString();
  EXPECT_EQ(CountAs(*scorer_), "0");
  EXPECT_EQ(Select("SELECT count(*) FROM seen")[0][0], "5");
  EXPECT_THAT(
      Select("SELECT c.oid, relrowsecurity, obj_description(c.oid), col_description(c.oid, 1),"
             " (SELECT count(*) FROM pg_policies WHERE tablename = 'p'),"
             " (SELECT count(*) FROM pg_publication_tables WHERE tablename = 'p'),"
             " (SELECT count(*) FROM pg_constraint WHERE conrelid = c.oid)"
             " FROM pg_class c WHERE relname = 'p'"),
      ElementsAre(ElementsAre(oid, "t", "scores", "whose", "1", "1", "2")));
  EXPECT_EQ(Select("SELECT has_column_privilege('" + role_ + "', 'p', 'id', 'UPDATE')")[0][0], "t");
  Run("ALTER TABLE p DROP CONSTRAINT small");
  Run("ALTER TABLE p ADD CONSTRAINT small CHECK (id < 5)");
  EXPECT_EQ(Write(9).sqlstate(), "23514");
  EXPECT_EQ(Select("SELECT count(*) FROM p")[0][0], "5");
}

TEST_P(PostgresResultTableTest, RowsThatARoleCannotSeeAreNotLeftBehind) {
  ASSERT_TRUE(Write(3).ok());
  LetScorerWrite();
  Run("GRANT SELECT, INSERT, DELETE ON p TO " + role_);
  const Status allowed = Write(*scorer_, 4);
  EXPECT_TRUE(allowed.ok()) << allowed.ToString();  // it need not own the table
  Run("ALTER TABLE p ENABLE ROW LEVEL SECURITY");
  Run("CREATE POLICY few ON p USING (id < 2) WITH CHECK (true)");
  for (const Status& refused : {Plan(*scorer_), Write(*scorer_, 5)}) {
    EXPECT_EQ(refused.sqlstate(), "42501");
    EXPECT_THAT(refused.message(), HasSubstr("row-level security"));
  }
  EXPECT_EQ(Select("SELECT count(*) FROM p")[0][0], "4");
  Run("ALTER TABLE p OWNER TO " + role_);
  EXPECT_TRUE(Write(*scorer_, 6).ok());
  Run("ALTER TABLE p FORCE ROW LEVEL SECURITY");
  EXPECT_EQ(Plan(*scorer_).sqlstate(), "42501");
  EXPECT_EQ(Select("SELECT count(*) FROM p")[0][0], "6");
}

TEST_P(PostgresResultTableTest, TheTriggersOfAnotherOwnerDoNotRun) {
  ASSERT_TRUE(Write(3).ok());
  LetScorerWrite();
  Run("GRANT SELECT, INSERT, DELETE ON p TO " + role_);
  Run("CREATE FUNCTION fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'");
  Run("CREATE TRIGGER g BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION fires()");
  for (const Status& refused : {Plan(*scorer_), Write(*scorer_, 5)}) {
    EXPECT_EQ(refused.sqlstate(), "42501");
    EXPECT_THAT(refused.message(), HasSubstr("trigger g on table public.p would run"));
  }
  EXPECT_TRUE(Write(4).ok()) << "the owner's own";
  Run("ALTER TABLE p DISABLE TRIGGER g");
  EXPECT_TRUE(Write(*scorer_, 5).ok());
}

// Whoever writes its rows gives them to its owner, whose functions run meanwhile.
TEST_P(PostgresResultTableTest, ATableOfAnotherRoleIsNotRefilled) {
  ASSERT_TRUE(Write(3).ok());
  LetScorerWrite();
  Run("GRANT SELECT, INSERT, DELETE ON p TO " + role_);
  const std::string owner = role_ + "_other";
  Run("CREATE ROLE " + owner);
  Run("ALTER TABLE p OWNER TO " + owner);
  for (const Status& refused : {Plan(*scorer_), Write(*scorer_, 5)}) {
    EXPECT_EQ(refused.sqlstate(), "42501");
    EXPECT_THAT(refused.message(), HasSubstr("table public.p belongs to role " + owner));
  }
  EXPECT_EQ(Select("SELECT count(*) FROM p")[0][0], "3");
  Run("GRANT " + owner + " TO " + role_);
  EXPECT_TRUE(Write(*scorer_, 5).ok());
  Run("DROP OWNED BY " + owner);
  Run("DROP ROLE " + owner);
}

// A domain's checks run with the rights of whoever writes a value, who had only read it.
TEST_P(PostgresResultTableTest, AnothersDomainIsStoredAsWhatItIsOf) {
  LetScorerWrite();
  Run("GRANT CREATE ON SCHEMA public TO " + role_);
  const std::string owner = role_ + "_other";
  Run("CREATE ROLE " + owner);
  Run("CREATE SCHEMA trap AUTHORIZATION " + owner);
  Run("GRANT USAGE ON SCHEMA trap TO " + role_);
  Run("CREATE TABLE trap.runs (id bigint)");
  Run("GRANT ALL ON trap.runs TO " + role_);
  Run("CREATE FUNCTION trap.checks(bigint) RETURNS boolean LANGUAGE plpgsql AS"
      " 'BEGIN INSERT INTO trap.runs VALUES ($1); RETURN true; END'");
  Run("CREATE DOMAIN trap.inner_one AS bigint CHECK (trap.checks(VALUE))");
  Run("CREATE DOMAIN trap.d AS trap.inner_one");
  Run("CREATE TYPE trap.pair AS (a trap.d, b text)");
  for (const char* type : {"DOMAIN trap.inner_one", "DOMAIN trap.d", "TYPE trap.pair"}) {
    Run(std::string("ALTER ") + type + " OWNER TO " + owner);
  }
  const auto columns = [](std::optional<std::string> declaration) {
    Schema schema = OneColumn();
    schema.columns[0].declaration = std::move(declaration);
    return schema;
  };
  const auto type = [this] {
    return Select(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = 'p'::regclass AND attname = 'id'")[0][0];
  };
  const Status written = Write(*scorer_, 3, true, columns("trap.d"));
  EXPECT_TRUE(written.ok()) << written.ToString();
  EXPECT_EQ(type(), "bigint");
  // What has such values in it.
  for (const char* inside : {"trap.d[]", "trap.pair", "trap.pair[]"}) {
    Run("DROP TABLE p");
    const Status inner = Write(*scorer_, 3, false, columns(inside));
    EXPECT_TRUE(inner.ok()) << inner.ToString();
    EXPECT_EQ(type(), "bigint") << inside;
  }
  EXPECT_EQ(Select("SELECT count(*) FROM trap.runs")[0][0], "0");
  Run("GRANT " + owner + " TO " + role_);
  Run("DROP TABLE p");
  EXPECT_TRUE(Write(*scorer_, 3, false, columns("trap.d")).ok());
  EXPECT_EQ(type(), "trap.d");
  EXPECT_EQ(Select("SELECT count(*) FROM trap.runs")[0][0], "3");
  Run("DROP TABLE p");
  Run("DROP OWNED BY " + owner + " CASCADE");
  Run("DROP ROLE " + owner);
}

// As when the schema's owner swaps it for another one while the table is written: here a trigger
// writes the stranger's table of that name.
TEST_P(PostgresResultTableTest, RowsThatGoToAStrangersTableAreTakenBack) {
  ASSERT_TRUE(Write(3).ok());
  LetScorerWrite();
  const std::string owner = role_ + "_other";
  Run("CREATE ROLE " + owner);
  Run("CREATE SCHEMA trap AUTHORIZATION " + owner);
  Run("CREATE TABLE trap.p (id bigint)");
  Run("ALTER TABLE trap.p OWNER TO " + owner);
  Run("GRANT USAGE ON SCHEMA trap TO " + role_);
  Run("GRANT ALL ON trap.p TO " + role_);
  Run("CREATE FUNCTION swaps() RETURNS trigger LANGUAGE plpgsql AS"
      " 'BEGIN INSERT INTO trap.p VALUES (NEW.id); RETURN NEW; END'");
  Run("CREATE TRIGGER s BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION swaps()");
  Run("ALTER TABLE p OWNER TO " + role_);
  const Status taken_back = Write(*scorer_, 5);
  EXPECT_EQ(taken_back.sqlstate(), "40001") << taken_back.ToString();
  EXPECT_EQ(Select("SELECT count(*) FROM trap.p")[0][0], "0");
  EXPECT_EQ(Select("SELECT count(*) FROM p")[0][0], "3");
  Run("GRANT " + owner + " TO " + role_);
  EXPECT_TRUE(Write(*scorer_, 5).ok());
  EXPECT_EQ(Select("SELECT count(*) FROM trap.p")[0][0], "5");
  Run("DROP OWNED BY " + owner);
  Run("DROP ROLE " + owner);
}

// Any role can write the record of its own table, and the table's comment.
TEST_P(PostgresResultTableTest, ARecordThatIsTooLongIsNone) {
  ASSERT_TRUE(Write(3).ok());
  Run("UPDATE sluice.result_tables SET columns = repeat('x', 2000000) WHERE table_name = 'p'");
  EXPECT_EQ(Write(4).sqlstate(), "42P07");
  Run("UPDATE sluice.result_tables SET columns = 'id bigint', identity = repeat('1', 2000000)"
      " WHERE table_name = 'p'");
  EXPECT_EQ(Write(4).sqlstate(), "42P07");
  EXPECT_EQ(Select("SELECT count(*) FROM p")[0][0], "3");
}

TEST_P(PostgresResultTableTest, APublicationNeedsAReplicaIdentity) {
  ASSERT_TRUE(Write(3).ok());
  Run("CREATE PUBLICATION changes FOR TABLE p");
  const Status refused = Plan(source());
  EXPECT_EQ(refused.sqlstate(), "55000");
  EXPECT_THAT(refused.message(), HasSubstr("replica identity"));
  EXPECT_THAT(refused.diagnostics()[0].hint, HasSubstr("REPLICA IDENTITY"));
  Run("ALTER TABLE p REPLICA IDENTITY FULL");
  EXPECT_TRUE(Write(4).ok());
}

TEST_P(PostgresResultTableTest, ARoleWithoutRightsDestroysNothing) {
  ASSERT_TRUE(Write(3).ok());
  Run("GRANT CREATE ON SCHEMA public TO " + role_);
  // Who may not write it is not told that Sluice wrote it.
  EXPECT_EQ(Plan(*scorer_).sqlstate(), "42P07");
  EXPECT_EQ(Write(*scorer_, 1).sqlstate(), "42P07");
  EXPECT_EQ(Write(*scorer_, 1, true).sqlstate(), "42501");
  Run("GRANT ALL ON p TO " + role_);
  EXPECT_TRUE(Plan(*scorer_).ok()) << "whoever may write it may know";
  Run("REVOKE DELETE ON p FROM " + role_);
  EXPECT_EQ(Plan(*scorer_).sqlstate(), "42501");
  Run("REVOKE INSERT ON p FROM " + role_);
  EXPECT_EQ(Plan(*scorer_).sqlstate(), "42P07");
  Run("CREATE TABLE mine (id bigint)");
  ResultTable mine;
  mine.name = {"", "mine"};
  mine.replace = true;
  EXPECT_EQ(scorer_->PlanResultTable(mine, nullptr).status().sqlstate(), "42501");
  mine.name.name = "fresh";
  Run("REVOKE CREATE ON SCHEMA public FROM " + role_);
  Run("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
  EXPECT_EQ(scorer_->PlanResultTable(mine, nullptr).status().sqlstate(), "42501");
  EXPECT_EQ(Select("SELECT count(*) FROM p")[0][0], "3");
}

// Any role that may write a table may write the table's record; only the table's owner can say
// whether it is ours.
TEST_P(PostgresResultTableTest, AForgedRecordEmptiesNoTable) {
  ASSERT_TRUE(Write(3).ok());
  Run("CREATE TABLE wine (id bigint)");
  Run("INSERT INTO wine VALUES (1), (2)");
  Run("GRANT SELECT ON wine TO " + role_);
  const auto as_scorer = [&](const std::string& sql) {
    return scorer_->Execute(sql, nullptr, {}).status();
  };
  const std::string forge =
      "INSERT INTO sluice.result_tables (schema_name, table_name, identity, columns,"
      " statement_kind, job, written_micros) VALUES ('public', 'wine',"
      " 'wine'::regclass::oid::text, 'id bigint', 'predict', 1, 1)";
  EXPECT_EQ(as_scorer(forge).sqlstate(), "42501");
  Run("GRANT INSERT ON wine, p TO " + role_);
  ASSERT_TRUE(as_scorer(forge).ok());
  EXPECT_EQ(as_scorer("COMMENT ON TYPE wine IS 'written by Sluice as public.wine with (id bigint)'")
                .sqlstate(),
            "42501");
  ResultTable wine;
  wine.name = {"public", "wine"};
  const Schema schema = OneColumn();
  const Status refused = source().PlanResultTable(wine, &schema).status();
  EXPECT_EQ(refused.sqlstate(), "42P07");
  EXPECT_THAT(refused.message(), HasSubstr("Sluice did not write it"));
  // Columns added to the table later.
  Run("ALTER TABLE p ADD COLUMN remark bigint");
  ASSERT_TRUE(as_scorer("UPDATE sluice.result_tables SET columns = 'id bigint, remark bigint'"
                        " WHERE table_name = 'p'")
                  .ok());
  const Schema wider = {{{"id", DataType::kInt64, ""}, {"remark", DataType::kInt64, ""}}};
  EXPECT_EQ(Write(1, false, wider).sqlstate(), "42P07");
  EXPECT_EQ(Select("SELECT count(*) FROM p")[0][0], "3");
  // A table that its owner has renamed to keep it.
  Run("ALTER TABLE p RENAME TO kept");
  Run("ALTER TABLE kept DROP COLUMN remark");
  Run("UPDATE sluice.result_tables SET columns = 'id bigint', table_name = 'kept'"
      " WHERE table_name = 'p'");
  ResultTable kept;
  kept.name = {"public", "kept"};
  EXPECT_EQ(source().PlanResultTable(kept, &schema).status().sqlstate(), "42P07");
  // With its old name and definition, it is Sluice's again.
  Run("ALTER TABLE kept RENAME TO p");
  Run("UPDATE sluice.result_tables SET table_name = 'p' WHERE table_name = 'kept'");
  EXPECT_TRUE(Plan(source()).ok());
  // With its owner's consent, it is Sluice's again with other columns.
  EXPECT_TRUE(Write(1, true, wider).ok());
  EXPECT_TRUE(Write(2, false, wider).ok());
  EXPECT_EQ(Select("SELECT count(*) FROM p")[0][0], "2");
}

// Other roles may create functions and operators with the server's names but better-fitting types:
// they would run with the rights of the role that writes a result.
TEST_P(PostgresResultTableTest, FunctionsThatOnlyLookLikeTheServersAreNotRun) {
  const std::string body = " LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not the server''; END'";
  Run("CREATE FUNCTION quote_ident(name) RETURNS text" + body);
  Run("CREATE FUNCTION format(text, text, text) RETURNS text" + body);
  Run("CREATE FUNCTION pg_typeof(text) RETURNS regtype" + body);
  Run("CREATE FUNCTION pg_collation_for(text) RETURNS text" + body);
  Run("CREATE FUNCTION joined(text, integer) RETURNS text" + body);
  Run("CREATE OPERATOR || (LEFTARG = text, RIGHTARG = integer, FUNCTION = joined)");
  Run("CREATE FUNCTION same(oid, integer) RETURNS boolean" + body);
  Run("CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = integer, FUNCTION = same)");
  Run("CREATE FUNCTION same(oid, regclass) RETURNS boolean" + body);
  Run("CREATE OPERATOR = (LEFTARG = oid, RIGHTARG = regclass, FUNCTION = same)");
  Run("CREATE FUNCTION joined(regclass, text) RETURNS text" + body);
  Run("CREATE OPERATOR || (LEFTARG = regclass, RIGHTARG = text, FUNCTION = joined)");
  for (const bool replace : {false, false, true}) {
    const Status written = Write(3, replace);
    EXPECT_TRUE(written.ok()) << written.ToString();
  }
  const Schema wider = {{{"id", DataType::kInt64, ""}, {"n", DataType::kInt64, ""}}};
  Run("GRANT SELECT ON p TO PUBLIC");
  const Status replaced = Write(3, true, wider);
  EXPECT_TRUE(replaced.ok()) << replaced.ToString();
  Run("CREATE TABLE child () INHERITS (p)");
  EXPECT_THAT(Write(3, true).message(), HasSubstr("public.child inherits from it"));
  const std::string select = "SELECT 'a'::text COLLATE \"C\" AS c";
  auto schema = source().Describe(select);
  ASSERT_TRUE(schema.ok()) << schema.status().ToString();
  const Status described = source().DescribeCopies(select, &*schema);
  EXPECT_TRUE(described.ok()) << described.ToString();
  Run("CREATE VIEW seen AS SELECT * FROM p");
  const auto tables = source().SourceTables("SELECT 1 AS one FROM seen WHERE false");
  ASSERT_TRUE(tables.ok()) << tables.status().ToString();
  EXPECT_THAT(*tables, Contains(TableName{"public", "p"}));
}

TEST_P(PostgresResultTableTest, ReplacingKeepsOwnerAndRights) {
  const Schema wider = {{{"id", DataType::kInt64, ""}, {"n", DataType::kInt64, ""}}};
  Run("CREATE TABLE p (id integer, gone text)");
  Run("ALTER TABLE p OWNER TO " + role_);
  Run("GRANT SELECT ON p TO PUBLIC");
  Run("GRANT UPDATE (id, gone) ON p TO PUBLIC");
  ASSERT_EQ(Write(3).sqlstate(), "42P07");
  const Status replaced = Write(3, true, wider);
  ASSERT_TRUE(replaced.ok()) << replaced.ToString();
  EXPECT_THAT(Select("SELECT pg_get_userbyid(relowner), relacl::text FROM pg_class"
                     " WHERE relname = 'p'")[0],
              ElementsAre(role_, HasSubstr("=r/")));
  EXPECT_THAT(Select("SELECT attacl::text FROM pg_attribute WHERE attrelid = 'p'::regclass"
                     " AND attname = 'id'")[0][0],
              HasSubstr("=w/"));
  // Default privileges for new tables are not applied to this one.
  Run("REVOKE ALL ON p FROM PUBLIC");
  Run("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC");
  ASSERT_TRUE(Write(3, true).ok());
  EXPECT_EQ(Select("SELECT has_table_privilege('public', 'p', 'SELECT')")[0][0], "f");
  Run("ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM PUBLIC");
}

TEST_P(PostgresResultTableTest, WhatANewTableWouldNotHaveStopsAReplacement) {
  Run("CREATE TABLE p (id integer)");
  Run("CREATE VIEW seen AS SELECT * FROM p");
  EXPECT_EQ(Write(3, true).sqlstate(), "2BP01");
  Run("DROP VIEW seen");
  Run("ALTER TABLE p ENABLE ROW LEVEL SECURITY");
  EXPECT_EQ(Write(3, true).sqlstate(), "55000");
  Run("ALTER TABLE p DISABLE ROW LEVEL SECURITY");
  EXPECT_TRUE(Write(3, true).ok());
}

TEST_P(PostgresResultTableTest, ColumnsThatCountByThemselvesGetTheRowsAsTheyAre) {
  ASSERT_TRUE(Write(3).ok());
  Run("ALTER TABLE p ALTER COLUMN id SET NOT NULL");
  Run("ALTER TABLE p ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY");
  const Status refilled = Write(5);
  ASSERT_TRUE(refilled.ok()) << refilled.ToString();
  EXPECT_EQ(Select("SELECT max(id) FROM p")[0][0], "4");
}

TEST_P(PostgresResultTableTest, SourcesAreFoundThroughWhateverReadsThem) {
  Run("CREATE TABLE p (id integer, k integer) PARTITION BY LIST (k)");
  Run("CREATE TABLE p_1 PARTITION OF p FOR VALUES IN (1)");
  Run("CREATE TABLE parent (id integer)");
  Run("CREATE TABLE child () INHERITS (parent)");
  Run("CREATE TABLE t (id integer)");
  Run("CREATE VIEW one AS SELECT * FROM t");
  Run("CREATE VIEW two AS SELECT * FROM one WHERE false");
  Run("CREATE FUNCTION simple() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM t'");
  Run("CREATE FUNCTION deep() RETURNS bigint LANGUAGE plpgsql AS"
      " 'BEGIN RETURN (SELECT count(*) FROM public.t); END'");
  Run("CREATE FUNCTION atomic() RETURNS bigint LANGUAGE sql BEGIN ATOMIC"
      " SELECT count(*) FROM t; END");
  const std::vector<std::pair<std::string, TableName>> cases = {
      {"SELECT * FROM p WHERE k = 2", {"public", "p_1"}},
      {"SELECT * FROM parent", {"public", "child"}},
      {"SELECT * FROM two", {"public", "t"}},
      {"WITH c AS (SELECT * FROM t) SELECT 1 AS x WHERE EXISTS (SELECT FROM c)", {"public", "t"}},
      {"SELECT 1 AS x WHERE false AND EXISTS (SELECT FROM t)", {"public", "t"}},
      {"SELECT simple()", {"public", "t"}},
      {"SELECT deep()", {"public", "t"}},
      {"SELECT atomic()", {"public", "t"}},
      {"SELECT * FROM t FOR UPDATE", {"public", "t"}},
      {"SELECT * FROM t;", {"public", "t"}},
      {"SELECT * FROM t -- comment", {"public", "t"}}};
  for (const auto& [select, table] : cases) {
    const auto tables = source().SourceTables(select);
    ASSERT_TRUE(tables.ok()) << select << "\n" << tables.status().ToString();
    EXPECT_THAT(*tables, Contains(table)) << select;
  }
  // Selecting from a materialised view only reads the view.
  Run("CREATE MATERIALIZED VIEW stored AS SELECT * FROM t");
  EXPECT_THAT(source().SourceTables("SELECT * FROM stored").value(),
              Not(Contains(TableName{"public", "t"})));
  EXPECT_EQ(Select("SELECT count(*) FROM pg_class WHERE relname LIKE 'sluice_reads%'")[0][0], "0");
}

INSTANTIATE_TEST_SUITE_P(Databases, PostgresResultTableTest, ::testing::Values("postgresql"),
                         DatabaseName);

}  // namespace
}  // namespace sluice::catalog
