#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "tests/catalog/both_databases.h"

namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WriterTest : public BothDatabases {
 protected:
  bool WritesResults() const override { return true; }
  static Schema AllTypes() {
    return {{{"flag", DataType::kBool, ""},
             {"number", DataType::kInt64, ""},
             {"real", DataType::kDouble, ""},
             {"Text \"x\"", DataType::kText, ""},
             {"at", DataType::kTimestamp, ""},
             {"raw", DataType::kBytes, ""}}};
  }

  // Rows number = first .. first + count - 1; in every third row all other columns are NULL.
  static RowBatch Batch(int64_t first, int64_t count) {
    static const std::string bytes("\x00\xff\\\n", 4);
    RowBatch batch;
    batch.Reset(AllTypes(), static_cast<size_t>(count));
    batch.rows = static_cast<size_t>(count);
    for (size_t row = 0; row < batch.rows; ++row) {
      const int64_t number = first + static_cast<int64_t>(row);
      for (RowBatch::Column& column : batch.columns) {
        column.null[row] = number % 3 == 0 ? 1 : 0;
      }
      batch.columns[1].null[row] = 0;
      batch.columns[0].int64s[row] = number % 2;
      batch.columns[1].int64s[row] = number;
      batch.columns[2].doubles[row] = static_cast<double>(number) / 7;
      batch.columns[3].texts[row] = "a\tb\\c\nd'\"ü\r";
      batch.columns[4].int64s[row] = 1'700'000'000'123'456;
      batch.columns[5].texts[row] = bytes;
    }
    return batch;
  }

  static ResultTable Named(std::string name) {
    ResultTable table;
    table.name.name = std::move(name);
    table.kind = "predict";
    return table;
  }

  void Write(const TableName& table, int64_t rows) {
    ResultTable result;
    result.name = table;
    auto writer = source().OpenWriter(result, AllTypes());
    ASSERT_TRUE(writer.ok()) << writer.status().ToString();
    ASSERT_TRUE((*writer)->Write(Batch(1, rows)).ok());
    const Status committed = (*writer)->Commit({});
    ASSERT_TRUE(committed.ok()) << committed.ToString();
  }

  // Tables that must not be left behind.
  Texts Leftovers() {
    return Select(postgres() ? "SELECT relname FROM pg_class WHERE relname LIKE 'sluice_new%'"
                             : "SELECT name FROM sqlite_schema WHERE name LIKE '%sluice_new%'");
  }
};

TEST_P(WriterTest, EveryTypeComesBack) {
  Write({"", "result"}, 3);
  const auto schema = source().Describe("SELECT * FROM result");
  ASSERT_TRUE(schema.ok());
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(schema->columns[i].type, AllTypes().columns[i].type) << i;
    EXPECT_EQ(schema->columns[i].name, AllTypes().columns[i].name);
  }
  const auto dataset = source().OpenDataset("SELECT * FROM result", {});
  ASSERT_TRUE(dataset.ok());
  const auto rows = ReadAll(source(), (*dataset)->spec());
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  ASSERT_EQ(rows->size(), 3U);
  EXPECT_THAT((*rows)[0],
              ElementsAre("t", "1", FormatDouble(1.0 / 7), "a\tb\\c\nd'\"ü\r",
                          "2023-11-14 22:13:20.123456", std::string("\x00\xff\\\n", 4)));
  EXPECT_THAT((*rows)[2], ElementsAre("NULL", "3", "NULL", "NULL", "NULL", "NULL"));
}

TEST_P(WriterTest, NothingIsSeenBeforeCommitAndAllAfter) {
  Write({"", "result"}, 2);
  {
    auto writer = source().OpenWriter(Named("result"), AllTypes());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Write(Batch(1, 500)).ok());
    ASSERT_TRUE((*writer)->Write(Batch(501, 500)).ok());
    EXPECT_EQ(Select("SELECT count(*) FROM result")[0][0], "2");
    const Status committed = (*writer)->Commit({});
    ASSERT_TRUE(committed.ok()) << committed.ToString();
  }
  EXPECT_EQ(Select("SELECT count(*) FROM result")[0][0], "1000");
  EXPECT_TRUE(Leftovers().empty());
}

TEST_P(WriterTest, WithoutCommitNothingIsLeft) {
  Write({"", "result"}, 2);
  {
    auto writer = source().OpenWriter(Named("result"), AllTypes());
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Write(Batch(1, 10)).ok());
  }
  EXPECT_EQ(Select("SELECT count(*) FROM result")[0][0], "2");
  EXPECT_TRUE(Leftovers().empty());
  {
    auto writer = source().OpenWriter(Named("fresh"), AllTypes());
    ASSERT_TRUE(writer.ok());
  }
  EXPECT_FALSE(source().ResolveTable({"", "fresh"}).value().has_value());
}

TEST_P(WriterTest, ABadRowLeavesTheOldTable) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite stores any text";
  }
  Write({"", "result"}, 2);
  {
    auto writer = source().OpenWriter(Named("result"), AllTypes());
    ASSERT_TRUE(writer.ok());
    RowBatch batch = Batch(1, 2);
    batch.columns[3].texts[0] = "\xff not UTF-8";
    Status status = (*writer)->Write(batch);
    status.Add((*writer)->Commit({}));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.sqlstate(), "22021");
    EXPECT_THAT(status.message(), HasSubstr("cannot write public.result"));
  }
  EXPECT_EQ(Select("SELECT count(*) FROM result")[0][0], "2");
  EXPECT_TRUE(Leftovers().empty());
}

TEST_P(WriterTest, ThreadsWriteTogether) {
  auto writer = source().OpenWriter(Named("result"), AllTypes());
  ASSERT_TRUE(writer.ok());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        for (int k = 0; k < 5; ++k) {
          EXPECT_TRUE((*writer)->Write(Batch(1 + (i * 5 + k) * 100, 100)).ok());
        }
      });
    }
  }
  ASSERT_TRUE((*writer)->Commit({}).ok());
  EXPECT_THAT(Select("SELECT count(*), count(DISTINCT number), max(number) FROM result"),
              ElementsAre(ElementsAre("2000", "2000", "2000")));
}

TEST_P(WriterTest, WritingWhileADatasetIsReadFromTheSameDatabase) {
  MakeNumbers(1000);
  const auto dataset = source().OpenDataset("SELECT id FROM t", {});
  ASSERT_TRUE(dataset.ok());
  const auto reader = source().OpenReader((*dataset)->spec());
  ASSERT_TRUE(reader.ok());
  const auto stream = (*reader)->Read((*dataset)->spec().shards(0), {0});
  ASSERT_TRUE(stream.ok());
  RowBatch batch;
  ASSERT_TRUE((*stream)->Next(10, &batch).ok());
  Write({"", "result"}, 50);
  ASSERT_TRUE((*stream)->Next(1000, &batch).ok());
  EXPECT_EQ(batch.rows, 990U);
  EXPECT_EQ(Select("SELECT count(*) FROM result")[0][0], "50");
}

TEST_P(WriterTest, QuotedNamesAndSchemas) {
  Write({"", "My \"Result"}, 1);
  EXPECT_EQ(Select("SELECT count(*) FROM \"My \"\"Result\"")[0][0], "1");
  if (postgres()) {
    Run("CREATE SCHEMA lab");
    Write({"lab", "result"}, 4);
    EXPECT_EQ(Select("SELECT count(*) FROM lab.result")[0][0], "4");
    EXPECT_EQ(source().ResolveTable({"lab", "result"}).value(), (TableName{"lab", "result"}));
    ResultTable nowhere = Named("result");
    nowhere.name.schema = "nowhere";
    const auto missing = source().OpenWriter(nowhere, AllTypes());
    ASSERT_FALSE(missing.ok());
    EXPECT_EQ(missing.status().sqlstate(), "3F000");
  }
}

TEST_P(WriterTest, RightsStayWithTheName) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no rights";
  }
  Write({"", "result"}, 1);
  Run("GRANT SELECT ON result TO PUBLIC");
  Write({"", "result"}, 2);
  EXPECT_THAT(Select("SELECT relacl::text FROM pg_class WHERE relname = 'result'")[0][0],
              HasSubstr("=r/"));
}

TEST_P(WriterTest, AppendMakesTheTableOrAddsToIt) {
  ASSERT_TRUE(source().AppendRows({"", "log"}, AllTypes(), Batch(1, 10)).ok());
  ASSERT_TRUE(source().AppendRows({"", "log"}, AllTypes(), Batch(11, 5)).ok());
  EXPECT_EQ(Select("SELECT count(*) FROM log")[0][0], "15");
  const Schema other = {{{"unknown", DataType::kInt64, ""}}};
  RowBatch batch;
  batch.Reset(other, 1);
  batch.rows = 1;
  const Status wrong = source().AppendRows({"", "log"}, other, batch);
  EXPECT_FALSE(wrong.ok());
}

TEST_P(WriterTest, DatabaseTypesAreKept) {
  Run("CREATE TABLE typed (a smallint, b varchar(8), c date, d real)");
  Run("INSERT INTO typed VALUES (7, 'x', '2024-02-29', 0.5)");
  const auto schema = source().Describe("SELECT * FROM typed");
  ASSERT_TRUE(schema.ok());
  EXPECT_EQ(schema->columns[2].type, DataType::kTimestamp);
  const auto dataset = source().OpenDataset("SELECT * FROM typed", {});
  ASSERT_TRUE(dataset.ok());
  const auto reader = source().OpenReader((*dataset)->spec());
  ASSERT_TRUE(reader.ok());
  const auto stream = (*reader)->Read((*dataset)->spec().shards(0), {0, 1, 2, 3});
  ASSERT_TRUE(stream.ok());
  RowBatch batch;
  ASSERT_TRUE((*stream)->Next(10, &batch).ok());
  auto writer = source().OpenWriter(Named("copied"), *schema);
  ASSERT_TRUE(writer.ok()) << writer.status().ToString();
  ASSERT_TRUE((*writer)->Write(batch).ok());
  const Status committed = (*writer)->Commit({});
  ASSERT_TRUE(committed.ok()) << committed.ToString();
  const auto copied = source().Describe("SELECT * FROM copied");
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->columns[0].database_type, "smallint");
  EXPECT_EQ(copied->columns[2].type, DataType::kTimestamp);
  EXPECT_THAT(Select("SELECT a, b, d FROM copied"), ElementsAre(ElementsAre("7", "x", "0.5")));
}

ON_BOTH_DATABASES(WriterTest);

}  // namespace
}  // namespace sluice::catalog
