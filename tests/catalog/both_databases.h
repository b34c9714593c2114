#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "tests/support/postgres_server.h"

namespace sluice::catalog {

// A test that runs once over SQLite and once over PostgreSQL, each time with an empty database.
class BothDatabases : public ::testing::TestWithParam<std::string> {
 protected:
  using Texts = std::vector<std::vector<std::string>>;

  void SetUp() override {
    if (postgres()) {
      database_ = std::make_unique<testing::PostgresTestDatabase>();
      if (database_->url().empty()) {
        GTEST_SKIP() << "no PostgreSQL server";
      }
      url_ = database_->url();
    } else {
      std::string directory =
          (std::filesystem::temp_directory_path() / "sluice-catalog-XXXXXX").string();
      ASSERT_NE(mkdtemp(directory.data()), nullptr);
      directory_ = directory;
      url_ = "sqlite:" + directory + "/test.db";
    }
    auto opened = OpenDatabase(url_);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    opened_ = std::move(opened).value();
    if (postgres() && WritesResults()) {  // SQLite's source creates what it needs itself
      ASSERT_TRUE(catalog().MakeTables().ok());
    }
  }

  void TearDown() override {
    opened_ = {};
    if (!directory_.empty()) {
      std::error_code error;
      std::filesystem::remove_all(directory_, error);
    }
    database_.reset();
  }

  // Whether its tests write result tables, which are recorded in the catalog.
  virtual bool WritesResults() const { return false; }
  bool postgres() const { return GetParam() == "postgresql"; }
  DataSource& source() { return *opened_.source; }
  Catalog& catalog() { return *opened_.catalog; }
  const std::string& url() const { return url_; }
  const std::string& directory() const { return directory_; }

  void Run(std::string_view sql) {
    const auto done = source().Execute(sql, nullptr, {});
    ASSERT_TRUE(done.ok()) << sql << "\n" << done.status().ToString();
  }

  // A table t(id, even, third) with ids 1..rows.
  void MakeNumbers(int64_t rows) {
    Run("CREATE TABLE t (id integer PRIMARY KEY, even boolean, third text, half double precision)");
    Run("INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
        std::to_string(rows) +
        ") SELECT i, i % 2 = 0, CASE WHEN i % 3 = 0 THEN NULL ELSE 'v' || (i % 3) END, i / 2.0 "
        "FROM n");
  }

  // All rows of a SELECT as text; NULL is "NULL".
  Texts Select(std::string_view sql) {
    class Collector final : public RowReceiver {
     public:
      Status Header(const Schema& schema) override {
        schema_ = schema;
        return OkStatus();
      }
      Status Rows(const RowBatch& batch) override {
        Append(batch, schema_, &texts);
        return OkStatus();
      }
      Texts texts;

     private:
      Schema schema_;
    };
    Collector collector;
    const auto done = source().Execute(sql, &collector, {});
    EXPECT_TRUE(done.ok()) << sql << "\n" << done.status().ToString();
    return collector.texts;
  }

  static void Append(const RowBatch& batch, const Schema& schema, Texts* texts) {
    for (size_t row = 0; row < batch.rows; ++row) {
      std::vector<std::string>& cells = texts->emplace_back();
      for (size_t i = 0; i < batch.columns.size(); ++i) {
        const Value value = batch.columns[i].ValueAt(row);
        cells.push_back(IsNull(value) ? "NULL" : FormatValue(value, schema.columns[i].type));
      }
    }
  }

  // The rows of one shard, in order; all columns when `columns` is empty.
  static Result<Texts> ReadShard(DataSource& from, const DatasetSpec& spec, int shard,
                                 std::vector<size_t> columns = {}, size_t batch_rows = 64) {
    ASSIGN_OR_RETURN(const auto reader, from.OpenReader(spec));
    Schema schema;
    if (columns.empty()) {
      for (int i = 0; i < spec.columns_size(); ++i) {
        columns.push_back(static_cast<size_t>(i));
      }
    }
    for (const size_t i : columns) {
      const auto& column = spec.columns(static_cast<int>(i));
      schema.columns.push_back({column.name(), static_cast<DataType>(column.type()), ""});
    }
    ASSIGN_OR_RETURN(const auto stream, reader->Read(spec.shards(shard), columns));
    Texts texts;
    RowBatch batch;
    do {
      RETURN_IF_ERROR(stream->Next(batch_rows, &batch));
      Append(batch, schema, &texts);
    } while (batch.rows > 0);
    return texts;
  }

  // The rows of all shards, one after another.
  static Result<Texts> ReadAll(DataSource& from, const DatasetSpec& spec) {
    Texts all;
    for (int shard = 0; shard < spec.shards_size(); ++shard) {
      ASSIGN_OR_RETURN(const Texts rows, ReadShard(from, spec, shard));
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

 private:
  std::unique_ptr<testing::PostgresTestDatabase> database_;
  std::string directory_;
  std::string url_;
  Database opened_;
};

inline std::string DatabaseName(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

#define ON_BOTH_DATABASES(suite)                                                        \
  INSTANTIATE_TEST_SUITE_P(Databases, suite, ::testing::Values("sqlite", "postgresql"), \
                           ::sluice::catalog::DatabaseName)

}  // namespace sluice::catalog
