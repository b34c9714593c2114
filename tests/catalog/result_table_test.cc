#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/catalog/result_table_fixture.h"

// Which tables a statement may write: those that it makes, and those that are ours or given to it.
namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_P(ResultTableTest, MadeThenRefilledAndRecorded) {
  EXPECT_EQ(Planned(Named({"", "p"})), ResultAction::kMake);
  EXPECT_OK(Write(Named({"", "p"}), 3));
  EXPECT_EQ(Planned(Named({"", "p"})), ResultAction::kRefill);
  EXPECT_OK(Write(Named({"", "p"}), 5));
  EXPECT_EQ(Count("p"), "5");
  EXPECT_THAT(Select(postgres() ? "SELECT schema_name, table_name, statement_kind, job, columns"
                                  " FROM sluice.result_tables"
                                : "SELECT schema_name, table_name, statement_kind, job, columns"
                                  " FROM sluice_result_tables"),
              ElementsAre(ElementsAre(postgres() ? "public" : "main", "p", "predict", "7",
                                      postgres() ? "id bigint, y text" : "id INTEGER, y TEXT")));
}

TEST_P(ResultTableTest, ATableOfTheUsersIsRefused) {
  Run("CREATE TABLE wine (id integer, y text)");
  Run("INSERT INTO wine VALUES (1, 'precious')");
  EXPECT_THAT(Refusal(Named({"", "wine"})),
              AllOf(HasSubstr("42P07"), HasSubstr("wine exists, and Sluice did not write it"),
                    HasSubstr("result.replace=true")));
  EXPECT_EQ(Count("wine"), "1");
  EXPECT_OK(Write(Replacing({"", "wine"}), 3));
  EXPECT_EQ(Count("wine"), "3");
  // From now on it is ours.
  EXPECT_OK(Write(Named({"", "wine"}), 4));
}

// The record belongs to the table, not to its name.
TEST_P(ResultTableTest, ATableThatTookTheNameOfOursIsTheUsers) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  Run("DROP TABLE p");
  Run(postgres() ? "CREATE TABLE p (id bigint, y text)" : "CREATE TABLE p (id INTEGER, y TEXT)");
  EXPECT_THAT(Refusal(Named({"", "p"})), HasSubstr("42P07"));
  Run("DROP TABLE p");
  EXPECT_OK(Write(Named({"", "p"}), 3));
  Run("ALTER TABLE p RENAME TO kept");
  Run("CREATE TABLE other (id integer)");
  Run("ALTER TABLE other RENAME TO p");
  EXPECT_THAT(Refusal(Named({"", "p"})), HasSubstr("42P07"));
  EXPECT_THAT(Refusal(Named({"", "kept"})), HasSubstr("42P07"));
}

// A copied definition includes all its text: by `.schema`, by a dump, by the procedure in SQLite's
// manual for altering tables. What the user then puts into the copy is the user's.
TEST_P(ResultTableTest, ACopiedDefinitionMakesNoTableOurs) {
  if (postgres()) {
    EXPECT_OK(Write(Named({"", "p"}), 3));
    Run("ALTER TABLE p RENAME TO p_old");
    Run("CREATE TABLE p (LIKE p_old INCLUDING ALL)");
    EXPECT_THAT(Refusal(Named({"", "p"})), HasSubstr("42P07"));
    return;
  }
  EXPECT_OK(Write(Named({"", "p"}), 3));
  const std::string definition = Select("SELECT sql FROM sqlite_schema WHERE name = 'p'")[0][0];
  Run("ALTER TABLE p RENAME TO p_old");
  Run(definition);
  Run("INSERT INTO p VALUES (1000, 'precious')");
  const std::string refused = "has other rows than Sluice wrote";
  EXPECT_THAT(Refusal(Named({"", "p"})), AllOf(HasSubstr("42P07"), HasSubstr(refused)));
  Run("INSERT INTO p SELECT * FROM p_old");
  EXPECT_THAT(Refusal(Named({"", "p"})), HasSubstr(refused));
  // Dropped and created again, with the same number of rows.
  Run("DROP TABLE p");
  Run(definition);
  Run("INSERT INTO p VALUES (1, 'new'), (2, 'new'), (3, 'precious')");
  EXPECT_THAT(Refusal(Named({"", "p"})), HasSubstr(refused));
  Run("VACUUM");
  EXPECT_THAT(Refusal(Named({"", "p"})), HasSubstr(refused));
  EXPECT_OK(Write(Appending({"", "p"}), 1));
  EXPECT_THAT(Refusal(Named({"", "p"})), HasSubstr(refused));
  // It contains only rows that Sluice wrote, and can write again.
  Run("DELETE FROM p");
  Run("INSERT INTO p SELECT * FROM p_old ORDER BY id DESC");
  EXPECT_OK(Write(Named({"", "p"}), 5));
  EXPECT_OK(Write(Appending({"", "p"}), 2));
  Run("VACUUM");
  EXPECT_OK(Write(Named({"", "p"}), 4));
  EXPECT_EQ(Count("p"), "4");
}

// A changed row in a table of ours is the user's (only in SQLite: PostgreSQL identifies the table).
TEST_P(ResultTableTest, ChangedRowsOfOursAreToldWhereOnlyRowsTellTables) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  Run("CREATE INDEX p_by_id ON p (id)");
  Run("CREATE VIEW seen AS SELECT count(*) AS n FROM p");
  Run("UPDATE p SET y = 'corrected' WHERE id = 2");
  if (postgres()) {
    EXPECT_EQ(Planned(Named({"", "p"})), ResultAction::kRefill);
    return;
  }
  EXPECT_THAT(Refusal(Named({"", "p"})), HasSubstr("42P07"));
  // With consent, it gets new rows, and keeps its status.
  EXPECT_EQ(Planned(Replacing({"", "p"})), ResultAction::kRefill);
  EXPECT_OK(Write(Replacing({"", "p"}), 4));
  EXPECT_EQ(Select("SELECT n FROM seen")[0][0], "4");
  EXPECT_EQ(Planned(Named({"", "p"})), ResultAction::kRefill);
}

TEST_P(ResultTableTest, EveryKindOfCellTellsRowsApart) {
  if (postgres()) {
    GTEST_SKIP() << "PostgreSQL knows the table";
  }
  EXPECT_OK(Write(Named({"", "p"}), 1));
  EXPECT_THAT(Select("SELECT id, y FROM p"), ElementsAre(ElementsAre("1", "new")));
  for (const std::string cells : {"1, 'nev'", "1, 'new '", "1, NULL", "1, x'6e6577'", "NULL, 'new'",
                                  "1.5, 'new'", "2, 'new'", "'1st', 'new'"}) {
    Run("DELETE FROM p");
    Run("INSERT INTO p VALUES (" + cells + ")");
    EXPECT_THAT(Refusal(Named({"", "p"})), HasSubstr("other rows")) << cells;
  }
  Run("DELETE FROM p");
  Run("INSERT INTO p VALUES (1, 'new')");
  EXPECT_OK(Write(Named({"", "p"}), 1));
}

TEST_P(ResultTableTest, OtherColumnsMakeOursAnewAndAnAlteredTableIsRefused) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  const Schema wider = {
      {{"id", DataType::kInt64, ""}, {"y", DataType::kText, ""}, {"z", DataType::kDouble, ""}}};
  const Schema turned = {{{"y", DataType::kText, ""}, {"id", DataType::kInt64, ""}}};
  const Schema typed = {{{"id", DataType::kDouble, ""}, {"y", DataType::kText, ""}}};
  for (const Schema& other : {wider, turned, typed}) {
    EXPECT_EQ(Planned(Named({"", "p"}), other), ResultAction::kReplace);
  }
  Run("CREATE VIEW seen AS SELECT y FROM p");
  EXPECT_THAT(Refusal(Named({"", "p"}), wider), HasSubstr("2BP01"));
  Run("DROP VIEW seen");
  EXPECT_OK(Write(Named({"", "p"}), 2, wider));
  EXPECT_OK(Write(Named({"", "p"}), 4, wider));
  Run("ALTER TABLE p ADD COLUMN remark text");
  EXPECT_THAT(Refusal(Named({"", "p"}), wider),
              AllOf(HasSubstr("42P07"), HasSubstr("was altered since Sluice wrote it")));
  EXPECT_EQ(Count("p"), "4");
}

TEST_P(ResultTableTest, WhatIsNoTableIsNeverReplaced) {
  Run("CREATE VIEW seen AS SELECT 1 AS id, 'a' AS y");
  Run("CREATE TABLE t (id integer)");
  Run("CREATE INDEX by_id ON t (id)");
  for (const std::string name : {"seen", "by_id"}) {
    for (const ResultTable& table :
         {Named({"", name}), Replacing({"", name}), Appending({"", name})}) {
      EXPECT_THAT(Refusal(table), HasSubstr("42809")) << name;
    }
  }
  if (postgres()) {
    Run("CREATE SEQUENCE numbers");
    Run("CREATE MATERIALIZED VIEW stored AS SELECT 1 AS id");
    Run("CREATE TABLE parts (id bigint, y text) PARTITION BY LIST (y)");
    for (const std::string name : {"numbers", "stored", "parts"}) {
      EXPECT_THAT(Refusal(Replacing({"", name})), HasSubstr("42809")) << name;
    }
    Run("CREATE TABLE part_new PARTITION OF parts FOR VALUES IN ('new')");
    EXPECT_OK(Write(Appending({"", "parts"}), 3));
    EXPECT_EQ(Count("part_new"), "3");
  } else {
    Run("CREATE VIRTUAL TABLE words USING fts5(y)");
    EXPECT_THAT(Refusal(Replacing({"", "words"})), HasSubstr("virtual table"));
  }
}

TEST_P(ResultTableTest, TheCatalogAndTheSystemAreNobodysResult) {
  EXPECT_OK(Write(Named({"", "p"}), 1));
  const std::vector<TableName> names =
      postgres() ? std::vector<TableName>{{"sluice", "models"},
                                          {"sluice", "mine"},
                                          {"pg_catalog", "pg_class"},
                                          {"", "pg_class"},
                                          {"information_schema", "x"},
                                          {"pg_temp", "x"},
                                          {"pg_toast", "x"}}
                 : std::vector<TableName>{{"", "sluice_models"},
                                          {"main", "SLUICE_result_tables"},
                                          {"", "sqlite_sequence"},
                                          {"", "sqlite_new"}};
  for (const TableName& name : names) {
    for (const ResultTable& table : {Named(name), Replacing(name), Appending(name)}) {
      EXPECT_THAT(Refusal(table), HasSubstr("42939")) << name.Text();
    }
  }
}

TEST_P(ResultTableTest, NamesAreTakenAsTheyAre) {
  Run("CREATE TABLE customer (id integer)");
  for (const std::string name :
       {"Customer2", "a.b", "Out Table", "say \"hi\"", "größe", "select", "it's", "%s{}"}) {
    EXPECT_OK(Write(Named({"", name}), 2));
    EXPECT_OK(Write(Named({"", name}), 3));
    EXPECT_EQ(Count(TableName{"", name}.Quoted()), "3") << name;
    EXPECT_OK(Write(Appending({"", name}), 1));
    EXPECT_OK(Write(Replacing({"", name}), 1, {{{"other", DataType::kInt64, ""}}}));
    EXPECT_EQ(Count(TableName{"", name}.Quoted()), "1") << name;
  }
  if (postgres()) {
    EXPECT_OK(Write(Named({"", "Customer"}), 2));
    EXPECT_EQ(Count("customer"), "0");
    EXPECT_OK(Write(Named({"", std::string(63, 'n')}), 2));
    EXPECT_THAT(Refusal(Named({"", std::string(64, 'n')})), HasSubstr("42622"));
    EXPECT_THAT(Refusal(Named({"", std::string(32, 'n') + "ääääääääääääääääää"})),
                HasSubstr("42622"));
    EXPECT_THAT(Refusal(Named({"", "p"}), {{{std::string(64, 'c'), DataType::kText, ""}}}),
                HasSubstr("42622"));
  } else {
    EXPECT_THAT(Refusal(Named({"", "CUSTOMER"})), HasSubstr("42P07"));
  }
}

TEST_P(ResultTableTest, RowsAreAddedWhereColumnsFit) {
  EXPECT_OK(Write(Appending({"", "log"}), 2));  // created if it does not exist
  EXPECT_OK(Write(Appending({"", "log"}), 3));
  EXPECT_EQ(Count("log"), "5");
  EXPECT_EQ(Planned(Named({"", "log"})), ResultAction::kRefill);
  Run(std::string("CREATE TABLE mine (remark text DEFAULT 'none', y text, id numeric, n integer") +
      ", g integer GENERATED ALWAYS AS (n + 1) STORED)");
  Run("INSERT INTO mine (y, id) VALUES ('old', 1)");
  EXPECT_EQ(Planned(Appending({"", "mine"})), ResultAction::kAppend);
  EXPECT_OK(Write(Appending({"", "mine"}), 2));
  EXPECT_THAT(Select("SELECT id, y, remark FROM mine ORDER BY y DESC, id"),
              ElementsAre(ElementsAre("1", "old", "none"), ElementsAre("1", "new", "none"),
                          ElementsAre("2", "new", "none")));
  // It is still the user's.
  EXPECT_THAT(Refusal(Named({"", "mine"})), HasSubstr("42P07"));
  EXPECT_THAT(Refusal(Appending({"", "mine"}), {{{"idd", DataType::kInt64, ""}}}),
              AllOf(HasSubstr("42703"), HasSubstr("idd")));
  EXPECT_THAT(Refusal(Appending({"", "mine"}), {{{"id", DataType::kText, ""}}}),
              HasSubstr("42804"));
  EXPECT_THAT(Refusal(Appending({"", "mine"}), {{{"g", DataType::kInt64, ""}}}),
              HasSubstr("428C9"));
  EXPECT_EQ(Count("mine"), "3");
}

// Databases of the previous version have models and jobs, but no result tables.
TEST_P(ResultTableTest, AnOlderCatalogGetsTheRecord) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  Run(postgres() ? "DROP TABLE sluice.result_tables" : "DROP TABLE sluice_result_tables");
  ASSERT_TRUE(OpenCatalog(url()).value()->MakeTables().ok());
  const auto later = OpenDataSource(url());
  ASSERT_TRUE(later.ok());
  const Status refused = WriteTo(**later, Named({"", "p"}), 2);
  EXPECT_EQ(refused.sqlstate(), "42P07");
  EXPECT_OK(WriteTo(**later, Replacing({"", "p"}), 2));
  EXPECT_OK(WriteTo(**later, Named({"", "p"}), 4));
  EXPECT_EQ(Count("p"), "4");
}

ON_BOTH_DATABASES(ResultTableTest);

}  // namespace
}  // namespace sluice::catalog
