// Another session that waits for an exclusive lock waits for the dataset. A reader that begins
// behind it gets its rows from the session that holds the snapshot, or is told instead of waiting,
// too.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "catalog/catalog.h"

#include "tests/catalog/both_databases.h"
#include "tests/support/eventually.h"

namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;

class ReaderLocksTest : public BothDatabases {
 protected:
  static constexpr int64_t kRows = 60'000;

  void SetUp() override {
    BothDatabases::SetUp();
    if (IsSkipped()) {
      return;
    }
    MakeNumbers(kRows);
    other_ = OpenDataSource(url()).value();
  }
  void OpenNumbers() {
    DatasetOptions options;
    options.rows_per_shard = 25'000;  // read ahead on a second connection
    dataset_ = source().OpenDataset("SELECT id FROM t", options).value();
    ASSERT_TRUE(dataset_->spec().read_ahead());
  }
  void TearDown() override {
    dataset_.reset();
    locking_ = {};
    other_.reset();
    BothDatabases::TearDown();
  }

  void LockTable() {
    locking_ = std::jthread([this] {
      const auto locked = other_->Execute("ALTER TABLE t ADD COLUMN more integer", nullptr, {});
      EXPECT_TRUE(locked.ok()) << locked.status().ToString();
    });
    EXPECT_TRUE(Eventually([this] {
      return Select(
                 "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT"
                 " granted AND relation = 't'::regclass")[0][0] == "1";
    }));
  }
  std::unique_ptr<ShardReader> MakeReader(bool lent = true) {
    DatasetSpec spec = dataset_->spec();
    if (!lent) {
      spec.clear_lender();
    }
    std::unique_ptr<ShardReader> reader = source().OpenReader(spec).value();
    reader->WaitForLocks(std::chrono::milliseconds(50));
    return reader;
  }
  // The rows of the whole dataset, as text; copied columns follow the decoded ones.
  Result<Texts> Read(ShardReader& reader, const std::vector<size_t>& columns,
                     const CopiedColumns& copied = {}) {
    Texts texts;
    for (const ShardRange& shard : dataset_->spec().shards()) {
      ASSIGN_OR_RETURN(const auto stream, reader.Read(shard, columns, copied));
      RowBatch batch;
      do {
        RETURN_IF_ERROR(stream->Next(1'000, &batch));
        for (size_t row = 0; row < batch.rows; ++row) {
          std::vector<std::string>& cells = texts.emplace_back();
          for (const RowBatch::Column& column : batch.columns) {
            const Value value = column.ValueAt(row);
            cells.push_back(IsNull(value) ? "NULL" : FormatValue(value, column.TypeAt(row)));
          }
        }
      } while (batch.rows > 0);
    }
    return texts;
  }
  int64_t SessionsThatWait() {
    return std::stoll(
        Select("SELECT count(*) FROM pg_locks WHERE NOT granted AND database = "
               "(SELECT oid FROM pg_database WHERE datname = current_database())")[0][0]);
  }

  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<DataSource> other_;
  std::jthread locking_;
};

TEST_P(ReaderLocksTest, AReaderBehindTheLockIsToldWhoHasIt) {
  OpenNumbers();
  LockTable();
  const Status prepared = MakeReader(false)->Prepare();
  EXPECT_EQ(prepared.sqlstate(), "55P03") << prepared.ToString();
  EXPECT_THAT(prepared.ToString(), HasSubstr("ALTER TABLE t ADD COLUMN more"));
}

TEST_P(ReaderLocksTest, APreparedReaderReadsOnWithoutItsSecondConnection) {
  OpenNumbers();
  const auto reader = MakeReader(false);
  ASSERT_TRUE(reader->Prepare().ok());
  LockTable();
  int64_t rows = 0;
  for (const ShardRange& shard : dataset_->spec().shards()) {
    const auto stream = reader->Read(shard, {0});
    ASSERT_TRUE(stream.ok()) << stream.status().ToString();
    RowBatch batch;
    do {
      const Status read = (*stream)->Next(4'096, &batch);
      ASSERT_TRUE(read.ok()) << read.ToString();
      rows += static_cast<int64_t>(batch.rows);
    } while (batch.rows > 0);
  }
  EXPECT_EQ(rows, kRows);
}

TEST_P(ReaderLocksTest, AReaderBehindTheLockGetsTheSameRowsFromWhoHoldsTheSnapshot) {
  Run("CREATE TABLE other AS SELECT id, even, third, half, id / 7::numeric AS seventh, "
      "half::float4 AS small, '2020-01-01'::timestamp + id * interval '1 hour' AS hour, "
      "'2020-01-01'::date + id AS day, decode(md5(id::text), 'hex') AS bytes FROM t WHERE id <= "
      "9000");
  const std::vector<size_t> all = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const CopiedColumns shown{{2, 3, 8, 6}, CopiedColumns::Purpose::kShow};
  const CopiedColumns written{{2, 3, 8, 6}, CopiedColumns::Purpose::kWrite};
  for (const bool mixed : {false, true}) {
    for (const char* select : {"SELECT * FROM other", "SELECT * FROM other WHERE id % 3 > 0",
                               "SELECT * FROM other ORDER BY id DESC LIMIT 900"}) {
      DatasetOptions options;
      options.rows_per_shard = 2'000;
      options.mixed = mixed;
      dataset_ = source().OpenDataset(select, options).value();
      const bool staged = !dataset_->spec().staging_table().empty();
      EXPECT_EQ(dataset_->spec().lender().empty(), staged);
      const auto before = Read(*MakeReader(), all);
      const auto before_shown = Read(*MakeReader(), {0, 3}, shown);
      const auto before_written = Read(*MakeReader(), {0, 3}, written);
      ASSERT_TRUE(before.ok() && before_shown.ok() && before_written.ok());
      std::jthread locking([this] {
        const auto locked =
            other_->Execute("ALTER TABLE other ADD COLUMN IF NOT EXISTS more int", nullptr, {});
        EXPECT_TRUE(locked.ok()) << locked.status().ToString();
      });
      EXPECT_TRUE(Eventually([&] { return staged || SessionsThatWait() > 0; }));
      const auto reader = MakeReader();
      EXPECT_TRUE(reader->Prepare().ok());
      EXPECT_EQ(Read(*reader, all).value(), *before) << select;
      EXPECT_EQ(Read(*reader, {0, 3}, shown).value(), *before_shown) << select;
      EXPECT_EQ(Read(*reader, {0, 3}, written).value(), *before_written) << select;
      EXPECT_EQ(SessionsThatWait(), staged ? 0 : 1) << "the other session still waits";
      dataset_.reset();
      locking.join();
      Run("ALTER TABLE other DROP COLUMN more");
    }
  }
}

TEST_P(ReaderLocksTest, SeveralReadersAtATimeEachGetAllRows) {
  OpenNumbers();
  const Texts before = Read(*MakeReader(), {0}).value();
  LockTable();
  std::vector<std::jthread> readers;
  std::vector<Texts> found(4);
  for (Texts& rows : found) {
    readers.emplace_back([this, &rows] {
      const auto other = OpenDataSource(url()).value();  // as of another process
      rows = Read(*other->OpenReader(dataset_->spec()).value(), {0}).value();
    });
  }
  readers.clear();
  for (const Texts& rows : found) {
    EXPECT_EQ(rows, before);
  }
}

TEST_P(ReaderLocksTest, WhatAReaderAbandonsOrCannotReadHoldsUpNoOther) {
  Run("CREATE TABLE u AS SELECT id, CASE id WHEN 40000 THEN 0 ELSE 1 END AS divisor FROM t");
  DatasetOptions options;
  options.rows_per_shard = 20'000;
  dataset_ = source().OpenDataset("SELECT id, 1 / divisor AS one FROM u", options).value();
  std::jthread locking([this] { EXPECT_TRUE(other_->Execute("DROP TABLE u", nullptr, {}).ok()); });
  EXPECT_TRUE(Eventually([this] { return SessionsThatWait() > 0; }));
  const auto reader = MakeReader();
  RowBatch batch;
  {
    const auto abandoned = reader->Read(dataset_->spec().shards(0), {0, 1});
    ASSERT_TRUE(abandoned.ok()) << abandoned.status().ToString();
    ASSERT_TRUE((*abandoned)->Next(10, &batch).ok());
  }
  const auto fails = Read(*reader, {0, 1});
  EXPECT_EQ(fails.status().sqlstate(), "22012") << fails.status().ToString();
  const auto rows = Read(*MakeReader(), {0});
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->size(), static_cast<size_t>(kRows));
  dataset_.reset();
}

TEST_P(ReaderLocksTest, AnotherProcessKeepsTheSnapshotAlsoBehindTheLock) {
  OpenNumbers();
  LockTable();
  const auto another = OpenDataSource(url()).value();
  const auto held = another->HoldDataset(dataset_->spec());
  ASSERT_TRUE(held.ok()) << held.status().ToString();
  EXPECT_NE((*held)->spec().snapshot(), dataset_->spec().snapshot());
  EXPECT_TRUE((*held)->spec().lender().empty()) << "it has no lock to read with";
}

INSTANTIATE_TEST_SUITE_P(Databases, ReaderLocksTest, ::testing::Values("postgresql"), DatabaseName);

}  // namespace
}  // namespace sluice::catalog
