#include <gtest/gtest.h>

#include <filesystem>
#include <stop_token>

#include "tests/catalog/both_databases.h"

// What statements leave in a SQLite file, and beside it.
namespace sluice::catalog {
namespace {

using SqliteLeftoversTest = BothDatabases;

INSTANTIATE_TEST_SUITE_P(Databases, SqliteLeftoversTest, ::testing::Values("sqlite"), DatabaseName);

// Also where the file is locked, until somebody looks again.
TEST_P(SqliteLeftoversTest, AStoppedStatementLeavesNoTable) {
  const Schema schema = {{{"x", DataType::kInt64, ""}}};
  ResultTable out;
  out.name.name = "out";
  RowBatch batch;
  batch.Reset(schema, 1);
  batch.rows = 1;
  const auto tables = [&] {
    return Select("SELECT name FROM sqlite_schema WHERE name LIKE 'sluice_new_%'").size();
  };
  for (const bool locked : {false, true}) {
    std::stop_source stop;
    ASSERT_TRUE(source().BeginStatement("", stop.get_token()).ok());
    auto writer = source().OpenWriter(out, schema);
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    ASSERT_TRUE((*writer)->Write(batch).ok());
    EXPECT_EQ(tables(), 1U);
    stop.request_stop();
    EXPECT_EQ((*writer)->Write(batch).code(), Code::kCancelled);
    if (locked) {
      Run("BEGIN IMMEDIATE");
    }
    writer->reset();
    source().EndStatement();
    EXPECT_EQ(tables(), locked ? 1U : 0U);
  }
  EXPECT_FALSE(catalog().DropLeftovers().ok()) << "it waits for nobody's lock";
  Run("COMMIT");
  // In use, and left behind by another data source of the same process.
  const auto other = OpenDatabase(url());
  const auto mine = source().OpenWriter(out, schema);
  ASSERT_TRUE(mine.ok()) << mine.status().ToString();
  ASSERT_TRUE(other->catalog->DropLeftovers().ok());
  EXPECT_EQ(tables(), 1U);
}

TEST_P(SqliteLeftoversTest, TheLogIsShortOnceNobodyReadsItAnyMore) {
  Run("CREATE TABLE t AS SELECT 1 AS x");
  const auto log = [&] { return std::filesystem::file_size(directory() + "/test.db-wal"); };
  auto dataset = source().OpenDataset("SELECT x FROM t", {});
  ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
  for (int i = 0; i < 3; ++i) {
    Run("CREATE TABLE big" + std::to_string(i) + " AS SELECT randomblob(4000000)");
  }
  EXPECT_GT(log(), 10'000'000U);
  EXPECT_TRUE(catalog().DropLeftovers().ok());
  EXPECT_GT(log(), 10'000'000U) << "while it is read";
  dataset->reset();
  ASSERT_TRUE(catalog().DropLeftovers().ok());
  EXPECT_EQ(log(), 0U);
}

}  // namespace
}  // namespace sluice::catalog
