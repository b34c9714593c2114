#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "tests/catalog/both_databases.h"

// What happens to a table that a statement writes, and to objects that users have attached to it.
namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Schema TwoColumns() {
  return {{{"id", DataType::kInt64, ""}, {"y", DataType::kText, ""}}};
}

RowBatch Rows(int64_t first, int64_t count, const Schema& schema = TwoColumns()) {
  RowBatch batch;
  batch.Reset(schema, static_cast<size_t>(count));
  batch.rows = static_cast<size_t>(count);
  for (size_t row = 0; row < batch.rows; ++row) {
    for (RowBatch::Column& column : batch.columns) {
      column.null[row] = 0;
      if (column.type == DataType::kText) {
        column.texts[row] = "new";
      } else if (column.type == DataType::kDouble) {
        column.doubles[row] = 0.5;
      } else {
        column.int64s[row] = first + static_cast<int64_t>(row);
      }
    }
  }
  return batch;
}

class ResultTableTest : public BothDatabases {
 protected:
  bool WritesResults() const override { return true; }
  static ResultTable Named(TableName name) {
    ResultTable table;
    table.name = std::move(name);
    table.kind = "predict";
    table.job = 7;
    return table;
  }
  static ResultTable Replacing(TableName name) {
    ResultTable table = Named(std::move(name));
    table.replace = true;
    return table;
  }
  static ResultTable Appending(TableName name) {
    ResultTable table = Named(std::move(name));
    table.append = true;
    return table;
  }

  static Status WriteTo(DataSource& to, const ResultTable& table, int64_t rows,
                        const Schema& schema = TwoColumns()) {
    ASSIGN_OR_RETURN(const auto writer, to.OpenWriter(table, schema));
    RETURN_IF_ERROR(writer->Write(Rows(1, rows, schema)));
    return writer->Commit({});
  }
  Status Write(const ResultTable& table, int64_t rows, const Schema& schema = TwoColumns()) {
    return WriteTo(source(), table, rows, schema);
  }
  std::string Count(const std::string& table) {
    return Select("SELECT count(*) FROM " + table)[0][0];
  }

  // The refusal by planning and by writing, which must be the same; "" for OK.
  std::string Refusal(const ResultTable& table, const Schema& schema = TwoColumns()) {
    const auto plan = source().PlanResultTable(table, &schema);
    const auto writer = source().OpenWriter(table, schema);
    EXPECT_EQ(plan.status().ToString(), writer.status().ToString());
    return plan.status().ToString();
  }
  ResultAction Planned(const ResultTable& table, const Schema& schema = TwoColumns()) {
    const auto plan = source().PlanResultTable(table, &schema);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? plan->action : ResultAction::kMake;
  }
};

#define EXPECT_OK(status)                                    \
  do {                                                       \
    const Status expected_ok = status;                       \
    EXPECT_TRUE(expected_ok.ok()) << expected_ok.ToString(); \
  } while (false)

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

TEST_P(ResultTableTest, AnAlteredTableAndOtherColumnsAreRefused) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  const Schema wider = {
      {{"id", DataType::kInt64, ""}, {"y", DataType::kText, ""}, {"z", DataType::kDouble, ""}}};
  const Schema turned = {{{"y", DataType::kText, ""}, {"id", DataType::kInt64, ""}}};
  const Schema typed = {{{"id", DataType::kDouble, ""}, {"y", DataType::kText, ""}}};
  for (const Schema& other : {wider, turned, typed}) {
    EXPECT_THAT(Refusal(Named({"", "p"}), other),
                AllOf(HasSubstr("42P07"), HasSubstr("has other columns than the result")));
  }
  EXPECT_OK(Write(Replacing({"", "p"}), 2, wider));
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

TEST_P(ResultTableTest, IndexesTriggersAndViewsStay) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  Run("CREATE UNIQUE INDEX p_by_id ON p (id)");
  Run("CREATE VIEW seen AS SELECT max(id) AS m FROM p");
  Run("CREATE TABLE audit (id integer)");
  if (postgres()) {
    Run("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO audit VALUES (new.id); RETURN new; END'");
    Run("CREATE TRIGGER noted AFTER INSERT ON p FOR EACH ROW EXECUTE FUNCTION note()");
  } else {
    Run("CREATE TRIGGER noted AFTER INSERT ON p BEGIN INSERT INTO audit VALUES (new.id); END");
  }
  EXPECT_OK(Write(Named({"", "p"}), 5));
  EXPECT_EQ(Select("SELECT m FROM seen")[0][0], "5");
  EXPECT_EQ(Count("audit"), "5");
  EXPECT_EQ(Select(postgres() ? "SELECT count(*) FROM pg_indexes WHERE indexname = 'p_by_id'"
                              : "SELECT count(*) FROM sqlite_schema WHERE name = 'p_by_id'")[0][0],
            "1");
  // New rows that violate a constraint: the old rows stay.
  const auto writer = source().OpenWriter(Named({"", "p"}), TwoColumns());
  ASSERT_TRUE(writer.ok());
  EXPECT_OK((*writer)->Write(Rows(1, 2)));
  EXPECT_OK((*writer)->Write(Rows(2, 2)));
  EXPECT_EQ((*writer)->Commit({}).sqlstate(), "23505");
  EXPECT_EQ(Count("p"), "5");
}

TEST_P(ResultTableTest, ForeignKeysThatTakeRowsAlongAreTold) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  Run("CREATE UNIQUE INDEX p_by_id ON p (id)");
  Run("CREATE TABLE notes (id bigint REFERENCES p (id) ON DELETE CASCADE, note text)");
  Run("INSERT INTO notes VALUES (1, 'precious')");
  EXPECT_THAT(Refusal(Named({"", "p"})), AllOf(HasSubstr("55000"), HasSubstr("notes")));
  Run("DROP TABLE notes");
  Run("CREATE TABLE notes (id bigint REFERENCES p (id) DEFERRABLE, note text)");
  Run("INSERT INTO notes VALUES (3, 'precious')");
  EXPECT_OK(Write(Named({"", "p"}), 4));  // the row is there again
  EXPECT_FALSE(Write(Named({"", "p"}), 2).ok());
  EXPECT_EQ(Count("p"), "4");
  EXPECT_EQ(Count("notes"), "1");
}

TEST_P(ResultTableTest, ATriggerThatKeepsRowsIsTold) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  if (postgres()) {
    Run("CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF old.id = 2 THEN RETURN NULL; END IF; RETURN old; END'");
    Run("CREATE TRIGGER kept BEFORE DELETE ON p FOR EACH ROW EXECUTE FUNCTION keep()");
  } else {
    Run("CREATE TRIGGER kept BEFORE DELETE ON p WHEN old.id = 2 BEGIN SELECT RAISE(IGNORE); END");
  }
  const Status kept = Write(Named({"", "p"}), 5);
  EXPECT_EQ(kept.sqlstate(), "55000") << kept.ToString();
  EXPECT_EQ(Count("p"), "3");
}

TEST_P(ResultTableTest, ReadersSeeTheOldRowsOrTheNewNeverNone) {
  EXPECT_OK(Write(Named({"", "p"}), 100));
  std::atomic<bool> done = false;
  std::atomic<int> reads = 0;
  std::jthread reader([&] {
    const auto own = OpenDataSource(url());
    ASSERT_TRUE(own.ok());
    while (!done || reads == 0) {
      const auto dataset = (*own)->OpenDataset("SELECT count(*) AS n FROM p", {});
      ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
      const auto rows = ReadAll(**own, (*dataset)->spec());
      ASSERT_TRUE(rows.ok()) << rows.status().ToString();
      EXPECT_THAT((*rows)[0][0], ::testing::AnyOf("100", "200"));
      ++reads;
    }
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_OK(Write(Named({"", "p"}), i % 2 == 0 ? 200 : 100));
  }
  done = true;
}

// A transaction that has read the table before the refill sees the old rows to its end: rows are
// not truncated.
TEST_P(ResultTableTest, AnOlderSnapshotKeepsItsRows) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  const auto other = OpenDataSource(url());
  ASSERT_TRUE(other.ok());
  Run(postgres() ? "BEGIN ISOLATION LEVEL REPEATABLE READ" : "BEGIN");
  EXPECT_EQ(Count("(SELECT 1) AS s"), "1");
  if (!postgres()) {
    EXPECT_EQ(Count("p"), "3");  // SQLite takes no snapshot before the first read
  }
  const Status refilled = WriteTo(**other, Named({"", "p"}), 5);
  EXPECT_TRUE(refilled.ok()) << refilled.ToString();
  EXPECT_EQ(Count("p"), "3");
  Run("ROLLBACK");
  EXPECT_EQ(Count("p"), "5");
}

TEST_P(ResultTableTest, TwoAtOnceGiveOneOrTheOther) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Status> outcomes(2);
    {
      std::vector<std::jthread> threads;
      for (int64_t i = 0; i < 2; ++i) {
        threads.emplace_back([&, i] {
          const auto own = OpenDataSource(url());
          outcomes[static_cast<size_t>(i)] = WriteTo(**own, Named({"", "p"}), 10 + i * 10);
        });
      }
    }
    EXPECT_OK(outcomes[0]);
    EXPECT_OK(outcomes[1]);
    EXPECT_THAT(Count("p"), ::testing::AnyOf("10", "20"));
  }
}

TEST_P(ResultTableTest, WhatHappensMeanwhileIsSeenAtTheEnd) {
  const auto writer = source().OpenWriter(Named({"", "p"}), TwoColumns());
  ASSERT_TRUE(writer.ok());
  EXPECT_OK((*writer)->Write(Rows(1, 3)));
  Run("CREATE TABLE p (id integer, precious text)");
  EXPECT_EQ((*writer)->Commit({}).sqlstate(), "42P07");
  Run("DROP TABLE p");
  EXPECT_OK(Write(Named({"", "p"}), 3));
  const auto refill = source().OpenWriter(Named({"", "p"}), TwoColumns());
  ASSERT_TRUE(refill.ok());
  EXPECT_OK((*refill)->Write(Rows(1, 4)));
  Run("DROP TABLE p");
  EXPECT_OK((*refill)->Commit({}));
  EXPECT_EQ(Count("p"), "4");
}

TEST_P(ResultTableTest, ACommitCanBeCancelled) {
  EXPECT_OK(Write(Named({"", "p"}), 3));
  if (postgres()) {
    Run("CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_sleep(600); RETURN new; END'");
    Run("CREATE TRIGGER slowly BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION slow()");
  } else {
    MakeNumbers(10'000);
    Run("CREATE TABLE other (n integer)");
    Run("CREATE TRIGGER slowly AFTER INSERT ON p BEGIN INSERT INTO other"
        " SELECT a.id FROM t a, t b, t c WHERE a.id + b.id + c.id = 0; END");
  }
  const auto writer = source().OpenWriter(Named({"", "p"}), TwoColumns());
  ASSERT_TRUE(writer.ok());
  EXPECT_OK((*writer)->Write(Rows(1, 5)));
  std::stop_source stop;
  std::jthread user([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  const Status cancelled = (*writer)->Commit(stop.get_token());
  EXPECT_EQ(cancelled.sqlstate(), "57014") << cancelled.ToString();
  EXPECT_EQ(Count("p"), "3");
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
