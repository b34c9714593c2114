#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/support/postgres_server.h"
#include "tests/support/recording_sink.h"

// A session's trainings and predictions see the columns that a table has now.
namespace sluice::server {
namespace {

class ChangedTableTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string url = database_.url();
    if (std::string_view(GetParam()) == "sqlite") {
      std::string pattern = ::testing::TempDir() + "/sluice-changed-XXXXXX";
      folder_ = mkdtemp(pattern.data());
      url = "sqlite:" + (folder_ / "test.db").string();
    } else if (url.empty()) {
      GTEST_SKIP() << "no PostgreSQL server";
    }
    opened_ = catalog::OpenDatabase(url).value();
  }
  void TearDown() override {
    opened_ = {};
    if (!folder_.empty()) {
      std::filesystem::remove_all(folder_);
    }
  }
  RecordingSink Run(const std::string& sql) {
    Session session(*opened_.source, *opened_.catalog, "tester");
    RecordingSink sink;
    const Status status = RunScript(sql, session, sink);
    EXPECT_TRUE(status.ok()) << sql << "\n" << status.ToString();
    return sink;
  }
  void Fill(const std::string& columns, const std::string& values) {
    Run("CREATE TABLE d (" + columns + ")");
    Run("INSERT INTO d SELECT " + values +
        " FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
        " SELECT i FROM n) AS s");
  }

  sluice::testing::PostgresTestDatabase database_;
  std::filesystem::path folder_;
  catalog::Database opened_;
};

TEST_P(ChangedTableTest, IsTrainedWithItsNewColumns) {
  const auto train = [this](const std::string& model) {
    return Run("SELECT * FROM d TO TRAIN LinearRegressor LABEL y INTO " + model).Number("r2");
  };
  Fill("a real, b real, y real", "i % 7, i % 11, i % 7 + i % 11");
  EXPECT_GT(train("first"), 0.99);
  Run("DROP TABLE d");
  Fill("a real, b real, e text, y real",
       "i % 7, i % 11, CASE WHEN i % 2 = 0 THEN 'blue' ELSE 'red' END, i % 7 + i % 11");
  EXPECT_GT(train("second"), 0.99);
  Run("ALTER TABLE d DROP COLUMN e");
  EXPECT_GT(train("third"), 0.99);
  Run("ALTER TABLE d ADD COLUMN f integer");
  Run("ALTER TABLE d DROP COLUMN a");
  EXPECT_LT(train("fourth"), 0.9) << "half of the label is unknown now";
  EXPECT_EQ(Run("SELECT * FROM d WHERE b < 2 TO PREDICT USING fourth").schema.columns.size(), 4);
}

INSTANTIATE_TEST_SUITE_P(Databases, ChangedTableTest, ::testing::Values("sqlite", "postgresql"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace sluice::server
