#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/catalog/both_databases.h"

namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExecuteTest : public BothDatabases {
 protected:
  Status Failure(std::string_view sql) {
    const auto done = source().Execute(sql, nullptr, {});
    EXPECT_FALSE(done.ok()) << sql;
    return done.status();
  }
  Diagnostic FirstDiagnostic(std::string_view sql) {
    const Status status = Failure(sql);
    return status.ok() ? Diagnostic{} : status.diagnostics()[0];
  }
};

class CountingReceiver final : public RowReceiver {
 public:
  Status Header(const Schema& schema) override {
    header = schema;
    return OkStatus();
  }
  Status Rows(const RowBatch& batch) override {
    rows += static_cast<int64_t>(batch.rows);
    ++batches;
    if (fail_after > 0 && rows >= fail_after) {
      return Cancelled("the client went away");
    }
    return OkStatus();
  }
  Schema header;
  int64_t rows = 0;
  int64_t batches = 0;
  int64_t fail_after = 0;
};

TEST_P(ExecuteTest, RowsComeInTheirTypes) {
  MakeNumbers(3);
  CountingReceiver receiver;
  const auto done = source().Execute("SELECT * FROM t ORDER BY id", &receiver, {});
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->tag, "SELECT 3");
  EXPECT_EQ(done->rows_affected, 3);
  ASSERT_EQ(receiver.header.columns.size(), 4U);
  EXPECT_EQ(receiver.header.columns[0].type, DataType::kInt64);
  EXPECT_EQ(receiver.header.columns[1].type, DataType::kBool);
  EXPECT_EQ(receiver.header.columns[2].type, DataType::kText);
  EXPECT_EQ(receiver.header.columns[3].type, DataType::kDouble);
  EXPECT_THAT(Select("SELECT * FROM t ORDER BY id"),
              ElementsAre(ElementsAre("1", "f", "v1", "0.5"), ElementsAre("2", "t", "v2", "1"),
                          ElementsAre("3", "f", "NULL", "1.5")));
}

TEST_P(ExecuteTest, ExpressionsAreTyped) {
  EXPECT_THAT(Select("SELECT 1 AS a, 'x' AS b, 2.5 AS c, NULL AS d"),
              ElementsAre(ElementsAre("1", "x", "2.5", "NULL")));
  EXPECT_THAT(Select("SELECT count(*), avg(x) FROM (SELECT 1 AS x UNION ALL SELECT 2) s"),
              ElementsAre(ElementsAre("2", postgres() ? "1.5000000000000000" : "1.5")));
}

TEST_P(ExecuteTest, AnEmptyResultHasAHeader) {
  MakeNumbers(1);
  CountingReceiver receiver;
  ASSERT_TRUE(source().Execute("SELECT id, half FROM t WHERE id > 5", &receiver, {}).ok());
  EXPECT_EQ(receiver.header.columns.size(), 2U);
  EXPECT_EQ(receiver.rows, 0);
}

TEST_P(ExecuteTest, LargeResultsComeInBatches) {
  MakeNumbers(5000);
  CountingReceiver receiver;
  ASSERT_TRUE(source().Execute("SELECT * FROM t", &receiver, {}).ok());
  EXPECT_EQ(receiver.rows, 5000);
  EXPECT_GE(receiver.batches, 5);
}

TEST_P(ExecuteTest, TagsAndCounts) {
  Run("CREATE TABLE a (x integer)");
  const auto inserted = source().Execute("INSERT INTO a VALUES (1), (2), (3)", nullptr, {});
  ASSERT_TRUE(inserted.ok());
  EXPECT_EQ(inserted->tag, "INSERT 0 3");
  EXPECT_EQ(inserted->rows_affected, 3);
  const auto updated = source().Execute("UPDATE a SET x = x + 1 WHERE x > 1", nullptr, {});
  ASSERT_TRUE(updated.ok());
  EXPECT_EQ(updated->tag, "UPDATE 2");
  const auto dropped = source().Execute("DROP TABLE a", nullptr, {});
  ASSERT_TRUE(dropped.ok());
  EXPECT_EQ(dropped->tag, "DROP TABLE");
  EXPECT_EQ(dropped->rows_affected, -1);
}

TEST_P(ExecuteTest, TransactionsReachOverStatements) {
  Run("CREATE TABLE a (x integer)");
  Run("BEGIN");
  Run("INSERT INTO a VALUES (1)");
  Run("ROLLBACK");
  EXPECT_EQ(Select("SELECT count(*) FROM a")[0][0], "0");
  Run("BEGIN");
  Run("INSERT INTO a VALUES (2)");
  Run("COMMIT");
  EXPECT_EQ(Select("SELECT x FROM a")[0][0], "2");
}

TEST_P(ExecuteTest, ErrorsCarrySqlStateAndPlace) {
  MakeNumbers(1);
  const Diagnostic column = FirstDiagnostic("SELECT id,\n 'ü', wrong FROM t");
  EXPECT_EQ(column.sqlstate, "42703");
  EXPECT_EQ(column.code, Code::kNotFound);
  EXPECT_EQ(column.span, (Span{18, 23}));  // bytes, not characters
  const Diagnostic table = FirstDiagnostic("SELECT * FROM missing");
  EXPECT_EQ(table.sqlstate, "42P01");
  const Diagnostic syntax = FirstDiagnostic("SELEC 1");
  EXPECT_EQ(syntax.sqlstate, "42601");
  EXPECT_EQ(syntax.span, (Span{0, 5}));
  EXPECT_EQ(FirstDiagnostic("CREATE TABLE t (x integer)").sqlstate, "42P07");
  EXPECT_EQ(FirstDiagnostic("INSERT INTO t (id) VALUES (1)").sqlstate, "23505");
  EXPECT_EQ(FirstDiagnostic("SELECT nofunction(1)").sqlstate, "42883");
  EXPECT_EQ(FirstDiagnostic("SELECT 1; SELECT 2").sqlstate, "42601");
  EXPECT_EQ(FirstDiagnostic(std::string("SELECT '\0'", 10)).sqlstate, "42601");
}

TEST_P(ExecuteTest, AFailedReceiverEndsTheStatement) {
  MakeNumbers(50000);
  CountingReceiver receiver;
  receiver.fail_after = 1000;
  const auto done = source().Execute("SELECT * FROM t", &receiver, {});
  ASSERT_FALSE(done.ok());
  EXPECT_THAT(done.status().message(), HasSubstr("the client went away"));
  EXPECT_EQ(receiver.rows, 1000);
  EXPECT_EQ(Select("SELECT count(*) FROM t")[0][0], "50000");
}

TEST_P(ExecuteTest, StopEndsALongStatement) {
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  // This would run for hours.
  const auto done = source().Execute(
      "SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
      " WHERE i < 100000000000) SELECT i FROM n) s",
      nullptr, stop.get_token());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.status().code(), Code::kCancelled);
  EXPECT_EQ(done.status().sqlstate(), "57014");
  EXPECT_EQ(Select("SELECT 7")[0][0], "7");
}

TEST_P(ExecuteTest, DescribeDoesNotRun) {
  MakeNumbers(2);
  const auto schema = source().Describe("SELECT id, even, third AS x, half * 2 AS y FROM t");
  ASSERT_TRUE(schema.ok()) << schema.status().ToString();
  EXPECT_THAT(schema->Names(), ElementsAre("id", "even", "x", "y"));
  EXPECT_EQ(schema->columns[0].type, DataType::kInt64);
  EXPECT_EQ(schema->columns[1].type, DataType::kBool);
  EXPECT_EQ(schema->columns[2].type, DataType::kText);
  EXPECT_EQ(schema->columns[3].type, DataType::kDouble);
  EXPECT_EQ(schema->columns[0].database_type, postgres() ? "integer" : "INTEGER");
  EXPECT_FALSE(source().Describe("CREATE TABLE x (a integer)").ok());
  EXPECT_FALSE(source().ResolveTable({"", "x"}).value().has_value());
}

TEST_P(ExecuteTest, AMissingTableHasItsNearestName) {
  MakeNumbers(1);
  Run("CREATE TABLE census_train (x integer)");
  const auto schema = source().Describe("SELECT * FROM census_trian");
  ASSERT_FALSE(schema.ok());
  EXPECT_EQ(schema.status().sqlstate(), "42P01");
  EXPECT_EQ(schema.status().diagnostics()[0].hint, "did you mean 'census_train'?");
}

TEST_P(ExecuteTest, SourceTablesAndResolvedNamesAgree) {
  MakeNumbers(1);
  Run("CREATE TABLE other (id integer, x integer)");
  Run("CREATE VIEW seen AS SELECT o.x FROM other o");
  const auto tables =
      source().SourceTables("SELECT * FROM t JOIN seen ON seen.x = t.id ORDER BY half");
  ASSERT_TRUE(tables.ok()) << tables.status().ToString();
  for (const std::string table : {"t", "other"}) {
    const auto resolved = source().ResolveTable({"", table});
    ASSERT_TRUE(resolved.ok());
    ASSERT_TRUE(resolved->has_value());
    EXPECT_THAT(*tables, ::testing::Contains(**resolved));
  }
  // Only the existence of the table is checked.
  for (const std::string select :
       {"SELECT count(*) FROM T", "SELECT c.n FROM (SELECT count(*) AS n FROM t) c",
        "WITH c AS (SELECT 1 AS one FROM t) SELECT count(*) FROM c"}) {
    const auto counted = source().SourceTables(select);
    ASSERT_TRUE(counted.ok()) << counted.status().ToString();
    EXPECT_THAT(*counted, ::testing::Contains(source().ResolveTable({"", "t"})->value())) << select;
  }
  EXPECT_FALSE(source().ResolveTable({"", "nothng"}).value().has_value());
  EXPECT_EQ(source().SourceTables("SELECT * FROM nothng").status().sqlstate(), "42P01");
}

TEST_P(ExecuteTest, SeveralThreadsAskAtOnce) {
  MakeNumbers(1000);
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10; ++k) {
        const auto schema = source().Describe("SELECT * FROM t");
        CountingReceiver receiver;
        const auto done = source().Execute("SELECT id FROM t", &receiver, {});
        right += schema.ok() && done.ok() && receiver.rows == 1000 ? 1 : 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(right, 40);
}

ON_BOTH_DATABASES(ExecuteTest);

}  // namespace
}  // namespace sluice::catalog
