#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "tests/catalog/both_databases.h"

namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DatasetTest : public BothDatabases {
 protected:
  std::unique_ptr<Dataset> Open(std::string_view select, int64_t rows_per_shard,
                                bool many_processes = false) {
    DatasetOptions options;
    options.rows_per_shard = rows_per_shard;
    options.many_processes = many_processes;
    auto dataset = source().OpenDataset(select, options);
    EXPECT_TRUE(dataset.ok()) << dataset.status().ToString();
    return dataset.ok() ? std::move(dataset).value() : nullptr;
  }

  // First column of every row.
  std::vector<int64_t> Ids(const DatasetSpec& spec) { return IdsFrom(source(), spec); }
  static std::vector<int64_t> IdsFrom(DataSource& from, const DatasetSpec& spec) {
    const auto rows = ReadAll(from, spec);
    EXPECT_TRUE(rows.ok()) << rows.status().ToString();
    std::vector<int64_t> ids;
    if (rows.ok()) {
      for (const auto& row : *rows) {
        ids.push_back(std::stoll(row[0]));
      }
    }
    return ids;
  }

  static std::vector<int64_t> Range(int64_t first, int64_t last, int64_t step = 1) {
    std::vector<int64_t> ids;
    for (int64_t i = first; i <= last; i += step) {
      ids.push_back(i);
    }
    return ids;
  }

  bool HasStage() {
    if (postgres()) {
      return !Select("SELECT 1 FROM pg_class WHERE relname LIKE 'stage\\_%'").empty();
    }
    for (const auto& entry : std::filesystem::directory_iterator(directory())) {
      if (entry.path().string().find(".stage-") != std::string::npos) {
        return true;
      }
    }
    return false;
  }
};

TEST_P(DatasetTest, MixedShardsHoldRowsFromAllOverTheTable) {
  Run("CREATE TABLE sorted AS WITH RECURSIVE s(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM s"
      " WHERE id < 4999) SELECT id FROM s ORDER BY id");
  for (const std::string select : {"SELECT id FROM sorted", "SELECT id FROM sorted LIMIT 5000"}) {
    DatasetOptions options;
    options.rows_per_shard = 1000;
    options.many_processes = true;
    options.mixed = true;
    const auto dataset = source().OpenDataset(select, options);
    ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
    const DatasetSpec& spec = (*dataset)->spec();
    ASSERT_EQ(spec.shards_size(), 5);
    std::vector<int64_t> all;
    for (int shard = 0; shard < spec.shards_size(); ++shard) {
      const auto rows = ReadShard(source(), spec, shard);
      ASSERT_TRUE(rows.ok()) << rows.status().ToString();
      EXPECT_EQ(static_cast<int64_t>(rows->size()), spec.shards(shard).estimated_rows());
      EXPECT_NEAR(static_cast<double>(rows->size()), 1000, 32);
      EXPECT_LT(std::stoll(rows->front()[0]), 500);
      EXPECT_GE(std::stoll(rows->back()[0]), 4500);
      for (const auto& row : *rows) {
        all.push_back(std::stoll(row[0]));
      }
      EXPECT_EQ(ReadShard(source(), spec, shard).value(), *rows);
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, Range(0, 4999));
    for (const ShardPiece& piece : spec.shards(2).pieces()) {
      EXPECT_EQ(piece.first_row() % 32, 0);
    }
  }
  EXPECT_EQ(Open("SELECT id FROM sorted", 10'000)->spec().shards_size(), 1);
}

TEST_P(DatasetTest, CutsAPlainTableAfterEveryNthRow) {
  MakeNumbers(1000);
  const auto dataset = Open("SELECT * FROM t", 300);
  ASSERT_NE(dataset, nullptr);
  const DatasetSpec& spec = dataset->spec();
  EXPECT_EQ(spec.cut(), postgres() ? DatasetSpec::CTID : DatasetSpec::ROWID);
  EXPECT_EQ(spec.staging_table(), "");
  ASSERT_EQ(spec.shards_size(), 4);
  for (int shard = 0; shard < 4; ++shard) {
    const auto rows = ReadShard(source(), spec, shard);
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    EXPECT_EQ(rows->size(), shard < 3 ? 300U : 100U);
    EXPECT_EQ(spec.shards(shard).estimated_rows(), shard < 3 ? 300 : 100);
  }
  EXPECT_EQ(Ids(spec), Range(1, 1000));
  EXPECT_EQ(dataset->CountRows().value(), 1000);
}

TEST_P(DatasetTest, AConditionKeepsItsMeaning) {
  MakeNumbers(1000);
  const auto dataset = Open("SELECT x.id FROM t AS x WHERE x.id <= 3 OR x.id > 990 -- the ends", 5);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->spec().staging_table(), "");
  EXPECT_EQ(dataset->spec().shards_size(), 3);
  EXPECT_THAT(Ids(dataset->spec()),
              ElementsAre(1, 2, 3, 991, 992, 993, 994, 995, 996, 997, 998, 999, 1000));
}

TEST_P(DatasetTest, AnIndexOnTheConditionDoesNotChangeTheOrder) {
  MakeNumbers(2000);
  Run("CREATE INDEX by_half ON t (half)");
  const auto dataset = Open("SELECT id FROM t WHERE half > 100", 250);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->spec().staging_table(), "");
  EXPECT_EQ(Ids(dataset->spec()), Range(201, 2000));
}

TEST_P(DatasetTest, OnlyTheColumnsAskedForAreRead) {
  MakeNumbers(7);
  const auto dataset = Open("SELECT * FROM t", 100);
  ASSERT_NE(dataset, nullptr);
  const auto rows = ReadShard(source(), dataset->spec(), 0, {2, 0, 1});
  ASSERT_TRUE(rows.ok());
  EXPECT_THAT((*rows)[0], ElementsAre("v1", "1", "f"));
  EXPECT_THAT((*rows)[2], ElementsAre("NULL", "3", "f"));
  const auto reader = source().OpenReader(dataset->spec());
  ASSERT_TRUE(reader.ok());
  EXPECT_FALSE((*reader)->Read(dataset->spec().shards(0), {4}).ok());
}

TEST_P(DatasetTest, RepeatedAndStrangeColumnNamesAreRead) {
  Run("CREATE TABLE odd (\"a \"\"b\" integer, \"Select\" text)");
  Run("INSERT INTO odd VALUES (1, '{begin}'), (2, '{end}')");
  const auto dataset = Open(
      "SELECT \"a \"\"b\", \"a \"\"b\", \"Select\" FROM odd WHERE \"Select\" <> '{end} {x}'", 10);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->spec().staging_table(), "");
  const auto rows = ReadAll(source(), dataset->spec());
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre("1", "1", "{begin}"), ElementsAre("2", "2", "{end}")));
}

TEST_P(DatasetTest, WhatCannotBeCutIsStagedAndRemoved) {
  MakeNumbers(500);
  for (const std::string select :
       {"SELECT a.id FROM t a JOIN t b ON a.id = b.id ORDER BY a.id",
        "SELECT id FROM t ORDER BY id LIMIT 400", "SELECT DISTINCT id FROM t ORDER BY id",
        "SELECT id FROM t UNION ALL SELECT id + 500 FROM t ORDER BY id",
        "SELECT id, count(*) FROM t GROUP BY id ORDER BY id",
        "WITH w AS (SELECT id FROM t) SELECT id FROM w ORDER BY id"}) {
    SCOPED_TRACE(select);
    auto dataset = Open(select, 100, true);
    ASSERT_NE(dataset, nullptr);
    EXPECT_NE(dataset->spec().staging_table(), "");
    EXPECT_GE(dataset->spec().shards_size(), 4);
    EXPECT_TRUE(HasStage());
    const std::vector<int64_t> ids = Ids(dataset->spec());
    EXPECT_EQ(ids, Range(1, static_cast<int64_t>(ids.size())));
    EXPECT_EQ(dataset->CountRows().value(), static_cast<int64_t>(ids.size()));
    dataset.reset();
    EXPECT_FALSE(HasStage());
  }
}

TEST_P(DatasetTest, AggregatesAndWindowsAreNotCut) {
  MakeNumbers(500);
  for (const std::string select :
       {"SELECT count(*) FROM t", "SELECT sum(half), max(third) FROM t WHERE id > 10",
        "SELECT row_number() OVER (ORDER BY id DESC) FROM t"}) {
    SCOPED_TRACE(select);
    const auto dataset = Open(select, 100);
    ASSERT_NE(dataset, nullptr);
    const auto rows = ReadAll(source(), dataset->spec());
    ASSERT_TRUE(rows.ok()) << rows.status().ToString();
    EXPECT_EQ(rows->size(), select.find("OVER") == std::string::npos ? 1U : 500U);
  }
}

TEST_P(DatasetTest, RowsThatDifferEachTimeAreFixedOnce) {
  MakeNumbers(50);
  const auto dataset = Open("SELECT id, random() FROM t", 10);
  ASSERT_NE(dataset, nullptr);
  EXPECT_NE(dataset->spec().staging_table(), "");
  const auto first = ReadAll(source(), dataset->spec());
  const auto second = ReadAll(source(), dataset->spec());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->size(), 50U);
  EXPECT_EQ(*first, *second);
}

TEST_P(DatasetTest, EveryReaderSeesTheStateOfTheOpening) {
  MakeNumbers(100);
  const auto dataset = Open("SELECT id FROM t", 30);
  ASSERT_NE(dataset, nullptr);
  const auto early = source().OpenReader(dataset->spec());
  ASSERT_TRUE(early.ok());
  Run("DELETE FROM t WHERE id < 50");
  Run("INSERT INTO t (id) VALUES (1000)");
  Run("UPDATE t SET third = 'changed'");
  EXPECT_EQ(Ids(dataset->spec()), Range(1, 100));
  EXPECT_EQ(dataset->CountRows().value(), 100);
  EXPECT_EQ(Select("SELECT count(*) FROM t")[0][0], "52");
}

TEST_P(DatasetTest, AnotherSourceReadsItsShards) {
  MakeNumbers(400);
  const auto dataset = Open("SELECT * FROM t WHERE id > 100", 50, true);
  ASSERT_NE(dataset, nullptr);
  Run("DELETE FROM t");
  const auto other = OpenDataSource(url());
  ASSERT_TRUE(other.ok());
  DatasetSpec travelled;
  ASSERT_TRUE(travelled.ParseFromString(dataset->spec().SerializeAsString()));
  EXPECT_EQ(IdsFrom(**other, travelled), Range(101, 400));
}

TEST_P(DatasetTest, AStreamMayBeLeftBeforeItsEnd) {
  MakeNumbers(5000);
  const auto dataset = Open("SELECT * FROM t", 5000);
  ASSERT_NE(dataset, nullptr);
  const auto reader = source().OpenReader(dataset->spec());
  ASSERT_TRUE(reader.ok());
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto stream = (*reader)->Read(dataset->spec().shards(0), {0});
    ASSERT_TRUE(stream.ok()) << stream.status().ToString();
    RowBatch batch;
    ASSERT_TRUE((*stream)->Next(10, &batch).ok());
    EXPECT_EQ(batch.rows, 10U);
    EXPECT_EQ(batch.columns[0].int64s[9], 10);
  }
}

// One process reads a large PostgreSQL shard through two connections; the rows are the same, in the
// same order, and a stream that is abandoned leaves both connections usable.
TEST_P(DatasetTest, ALargeShardIsReadAhead) {
  constexpr int64_t kRows = 60'000;
  MakeNumbers(kRows);
  const auto dataset = Open("SELECT id FROM t", 25'000);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(Ids(dataset->spec()), Range(1, kRows));
  const auto reader = source().OpenReader(dataset->spec());
  ASSERT_TRUE(reader.ok());
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto stream = (*reader)->Read(dataset->spec().shards(1), {0});
    ASSERT_TRUE(stream.ok()) << stream.status().ToString();
    RowBatch batch;
    ASSERT_TRUE((*stream)->Next(10, &batch).ok());
    EXPECT_EQ(batch.rows, 10U);
    EXPECT_EQ(batch.columns[0].int64s[9], 25'010);
    if (postgres()) {
      // The second server process may need a moment to start.
      std::string reading;
      for (int look = 0; look < 500 && reading != "2"; ++look) {
        reading = Select(
            "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle'"
            " AND query LIKE 'SELECT c0 FROM%ctid OPERATOR(pg_catalog.>=)%'"
            " AND datname = current_database() AND pid <> pg_backend_pid()")[0][0];
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      EXPECT_EQ(reading, "2");
    }
  }
  const auto shared = Open("SELECT id FROM t", 25'000, true);
  ASSERT_NE(shared, nullptr);
  EXPECT_FALSE(shared->spec().read_ahead());
  EXPECT_EQ(Ids(shared->spec()), Range(1, kRows));
}

TEST_P(DatasetTest, LongTextsStayValidUntilTheNextBatch) {
  Run("CREATE TABLE long (id integer, body text)");
  const std::string letters = postgres() ? "repeat(chr(96 + i), i * 20000)"
                                         : "replace(hex(zeroblob(i * 10000)), '0', char(96 + i))";
  Run("INSERT INTO long WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
      "20)"
      " SELECT i, " +
      letters + " FROM n");
  const auto dataset = Open("SELECT id, body FROM long", 100);
  ASSERT_NE(dataset, nullptr);
  const auto rows = ReadShard(source(), dataset->spec(), 0, {0, 1}, 20);
  ASSERT_TRUE(rows.ok());
  ASSERT_EQ(rows->size(), 20U);
  for (size_t i = 0; i < rows->size(); ++i) {
    EXPECT_EQ((*rows)[i][1], std::string((i + 1) * 20000, static_cast<char>('a' + i)));
  }
}

TEST_P(DatasetTest, AnEmptyTableHasOneEmptyShard) {
  Run("CREATE TABLE none (id integer)");
  const auto dataset = Open("SELECT * FROM none", 10);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->spec().shards_size(), 1);
  EXPECT_THAT(Ids(dataset->spec()), IsEmpty());
  EXPECT_EQ(dataset->CountRows().value(), 0);
}

TEST_P(DatasetTest, ManyReadersWorkAtTheSameTime) {
  MakeNumbers(300);
  const auto dataset = Open("SELECT id FROM t", 100);
  ASSERT_NE(dataset, nullptr);
  std::vector<std::unique_ptr<ShardReader>> readers;
  for (int i = 0; i < 6; ++i) {
    auto reader = source().OpenReader(dataset->spec());
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    readers.push_back(std::move(reader).value());
  }
  for (const auto& reader : readers) {
    const auto stream = reader->Read(dataset->spec().shards(1), {0});
    ASSERT_TRUE(stream.ok());
    RowBatch batch;
    ASSERT_TRUE((*stream)->Next(1000, &batch).ok());
    EXPECT_EQ(batch.rows, 100U);
  }
}

TEST_P(DatasetTest, AClosedDatasetIsToldSo) {
  MakeNumbers(10);
  DatasetSpec spec;
  {
    const auto dataset = Open("SELECT id FROM t", 100);
    ASSERT_NE(dataset, nullptr);
    spec = dataset->spec();
  }
  const auto reader = source().OpenReader(spec);
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.status().code(), Code::kFailedPrecondition);
}

TEST_P(DatasetTest, TheEstimateTellsTheMethod) {
  MakeNumbers(5000);
  DatasetOptions options;
  options.rows_per_shard = 1000;
  const auto cut = source().EstimateCut("SELECT * FROM t", options);
  ASSERT_TRUE(cut.ok()) << cut.status().ToString();
  EXPECT_EQ(cut->method, postgres() ? "ctid ranges" : "rowid ranges");
  EXPECT_NEAR(static_cast<double>(cut->estimated_rows), 5000, 2500);
  const auto staged = source().EstimateCut("SELECT * FROM t ORDER BY id", options);
  ASSERT_TRUE(staged.ok());
  EXPECT_EQ(staged->method, "staged");
  EXPECT_FALSE(HasStage());
}

TEST_P(DatasetTest, ErrorsOfTheSelectHaveTheirPlace) {
  MakeNumbers(10);
  const auto missing = source().OpenDataset("SELECT id, nothng FROM t", {});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().sqlstate(), "42703");
  EXPECT_EQ(missing.status().diagnostics()[0].span.begin, 11);
  EXPECT_EQ(missing.status().diagnostics()[0].span.end, 17);
}

TEST_P(DatasetTest, AFailureWhileReadingIsToldAndTheReaderGoesOn) {
  MakeNumbers(10);
  if (!postgres()) {
    GTEST_SKIP() << "SQLite answers a division by zero with NULL";
  }
  const auto dataset = Open("SELECT 1 / (id - 5) FROM t", 100);
  ASSERT_NE(dataset, nullptr);
  const auto reader = source().OpenReader(dataset->spec());
  ASSERT_TRUE(reader.ok());
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto stream = (*reader)->Read(dataset->spec().shards(0), {0});
    ASSERT_TRUE(stream.ok());
    RowBatch batch;
    const Status failed = (*stream)->Next(100, &batch);
    EXPECT_EQ(failed.sqlstate(), "22012");
    EXPECT_THAT(failed.message(), HasSubstr("division by zero"));
  }
}

TEST_P(DatasetTest, ViewsAndOtherTablesAreReadWhole) {
  MakeNumbers(300);
  Run("CREATE VIEW v AS SELECT id, third FROM t");
  const auto dataset = Open("SELECT * FROM v", 100, true);
  ASSERT_NE(dataset, nullptr);
  std::vector<int64_t> ids = Ids(dataset->spec());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, Range(1, 300));
}

ON_BOTH_DATABASES(DatasetTest);

}  // namespace
}  // namespace sluice::catalog
