#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "catalog/model_store.h"

// An open database file is deleted, replaced, truncated or overwritten by another program. SQLite
// does not notice, and what it writes after that would never be read.
namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;

class DisturbedFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-place-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    file_ = folder_ + "/test.db";
    Use(Make(file_, 20'000));
    ASSERT_TRUE(Put().ok());
  }
  void TearDown() override {
    Use({});
    std::filesystem::remove_all(folder_);
  }
  void Use(Database database) {
    source_ = std::move(database.source);
    catalog_ = std::move(database.catalog);
  }
  static Database Make(const std::string& file, int64_t rows) {
    Database database = OpenDatabase("sqlite:" + file).value();
    DataSource* const source = database.source.get();
    const auto made = source->Execute(
        "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i "
        "< " +
            std::to_string(rows) + ") SELECT i, 'some text in the row ' || i AS c FROM n",
        nullptr, {});
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    EXPECT_TRUE(source->Execute("PRAGMA wal_checkpoint(TRUNCATE)", nullptr, {}).ok());
    return database;
  }
  Status Put() const {
    ModelVersion model;
    model.name = "m";
    model.type = "DNNClassifier";
    return catalog_->models().Put(model, std::string(100'000, 'w'), false).status();
  }
  Status Write() const {
    const Schema schema{{{"i", DataType::kInt64, ""}}};
    ResultTable table;
    table.name = {"", "out"};
    ASSIGN_OR_RETURN(const auto writer, source_->OpenWriter(table, schema));
    RowBatch batch;
    batch.Reset(schema, 1);
    batch.rows = 1;
    batch.columns[0].null[0] = 0;
    batch.columns[0].int64s[0] = 7;
    RETURN_IF_ERROR(writer->Write(batch));
    return writer->Commit({});
  }

  std::string folder_;
  std::string file_;
  std::unique_ptr<DataSource> source_;
  std::unique_ptr<Catalog> catalog_;
};

TEST_F(DisturbedFile, WhatIsStoredWhereItIsLookedForIsStored) {
  ASSERT_TRUE(Put().ok());
  ASSERT_TRUE(Write().ok());
  EXPECT_EQ(catalog_->models().Versions("", "m")->size(), 2U);
  ASSERT_TRUE(source_->Execute("DELETE FROM t", nullptr, {}).ok());
  ASSERT_TRUE(source_->Execute("VACUUM", nullptr, {}).ok());
  ASSERT_TRUE(source_->Execute("PRAGMA wal_checkpoint(TRUNCATE)", nullptr, {}).ok());
  EXPECT_TRUE(Put().ok()) << "a file may become smaller";
}

TEST_F(DisturbedFile, AFileThatWasDeletedTakesNoModel) {
  std::filesystem::remove(file_);
  for (const Status& status : {Put(), Write()}) {
    EXPECT_EQ(status.sqlstate(), "58P01") << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("was deleted while it was in use"));
  }
  EXPECT_FALSE(std::filesystem::exists(file_)) << "nothing new is made in its place";
}

TEST_F(DisturbedFile, AFileThatWasReplacedTakesNoModel) {
  static_cast<void>(Make(folder_ + "/other.db", 10));
  std::filesystem::rename(folder_ + "/other.db", file_);
  for (const Status& status : {Put(), Write()}) {
    EXPECT_EQ(status.sqlstate(), "58030") << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("was replaced by another one"));
  }
}

TEST_F(DisturbedFile, AFileThatWasTruncatedTakesNoModel) {
  std::filesystem::resize_file(file_, 0);
  EXPECT_EQ(Put().sqlstate(), "58030");
}

TEST_F(DisturbedFile, AFileThatWasCutShortTakesNoModel) {
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) / 2 / 4096 * 4096);
  const Status status = Put();
  EXPECT_EQ(status.sqlstate(), "XX001") << status.ToString();
  EXPECT_FALSE(Write().ok());
}

// All pages were looked at before; they are again where the file has changed.
TEST_F(DisturbedFile, PagesThatChangeBehindTheHeaderAreSeen) {
  ASSERT_TRUE(Put().ok());
  ASSERT_TRUE(source_->Execute("PRAGMA wal_checkpoint(TRUNCATE)", nullptr, {}).ok());
  ASSERT_TRUE(Put().ok());
  {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4 * 4096);
    file << std::string(8 * 4096, 'x');
  }
  EXPECT_EQ(Put().sqlstate(), "XX001");
}

TEST_F(DisturbedFile, AFileThatWasOverwrittenTakesNoModel) {
  {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    file << std::string(50 * 4096, 'x');
  }
  const Status status = Put();
  EXPECT_EQ(status.sqlstate(), "58030") << status.ToString();
  EXPECT_THAT(status.message(), HasSubstr("was overwritten"));
}

// Missing parts of the file are an error of the read, not a signal that ends the process.
TEST_F(DisturbedFile, AFileThatIsCutShortWhileItIsReadFailsTheRead) {
  const std::string large = folder_ + "/large.db";
  Use(Make(large, 300'000));  // more than a connection keeps in memory
  const auto dataset = source_->OpenDataset("SELECT i, c FROM t", {}).value();
  const auto reader = source_->OpenReader(dataset->spec()).value();
  const int last = dataset->spec().shards_size() - 1;
  const auto stream = reader->Read(dataset->spec().shards(last), {0, 1}).value();
  RowBatch batch;
  ASSERT_TRUE(stream->Next(10, &batch).ok());
  std::filesystem::resize_file(large, 8192);
  Status read;
  do {
    read = stream->Next(1'000, &batch);
  } while (read.ok() && batch.rows > 0);
  EXPECT_EQ(read.sqlstate(), "XX001") << read.ToString();
}

TEST_F(DisturbedFile, AFileWithTheBytesOfAnotherDatabaseTakesNoModel) {
  static_cast<void>(Make(folder_ + "/other.db", 10));
  std::filesystem::copy_file(folder_ + "/other.db", file_,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_FALSE(Put().ok());
}

}  // namespace
}  // namespace sluice::catalog
