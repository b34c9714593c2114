// Another session that waits for an exclusive lock waits for the dataset, so that a reader which
// begins behind it has to be told instead of waiting, too.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "tests/catalog/both_databases.h"

namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;

class ReaderLocksTest : public BothDatabases {
 protected:
  static constexpr int64_t kRows = 60'000;

  void SetUp() override {
    BothDatabases::SetUp();
    MakeNumbers(kRows);
    DatasetOptions options;
    options.rows_per_shard = 25'000;  // read ahead on a second connection
    dataset_ = source().OpenDataset("SELECT id FROM t", options).value();
    ASSERT_TRUE(dataset_->spec().read_ahead());
    other_ = OpenDataSource(url()).value();
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
    while (Select("SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND NOT granted"
                  " AND relation = 't'::regclass")[0][0] != "1") {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  std::unique_ptr<ShardReader> MakeReader() {
    std::unique_ptr<ShardReader> reader = source().OpenReader(dataset_->spec()).value();
    reader->WaitForLocks(std::chrono::milliseconds(50));
    return reader;
  }

  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<DataSource> other_;
  std::jthread locking_;
};

TEST_P(ReaderLocksTest, AReaderBehindTheLockIsToldWhoHasIt) {
  LockTable();
  const Status prepared = MakeReader()->Prepare();
  EXPECT_EQ(prepared.sqlstate(), "55P03") << prepared.ToString();
  EXPECT_THAT(prepared.ToString(), HasSubstr("ALTER TABLE t ADD COLUMN more"));
}

TEST_P(ReaderLocksTest, APreparedReaderReadsOnWithoutItsSecondConnection) {
  const auto reader = MakeReader();
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

INSTANTIATE_TEST_SUITE_P(Databases, ReaderLocksTest, ::testing::Values("postgresql"), DatabaseName);

}  // namespace
}  // namespace sluice::catalog
