#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "tests/support/postgres_server.h"
#include "tests/support/slt_runner.h"

// Runs every tests/sql/*.slt and every sql_examples/*.sql on a new SQLite file and a new PostgreSQL
// database each.
namespace sluice {
namespace {

namespace fs = std::filesystem;

struct Case {
  std::string path;
  std::string dialect;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.path << " on " << one.dialect;
}

std::vector<Case> CasesOf(const std::string& folder, const std::string& extension) {
  std::vector<Case> cases;
  for (const fs::directory_entry& entry : fs::directory_iterator(SLUICE_SOURCE_DIR + folder)) {
    if (entry.path().extension() == extension) {
      cases.push_back({entry.path().string(), "sqlite"});
      cases.push_back({entry.path().string(), "postgresql"});
    }
  }
  std::sort(cases.begin(), cases.end(),
            [](const Case& a, const Case& b) { return a.path < b.path; });
  return cases;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  return fs::path(info.param.path).stem().string() + "_" + info.param.dialect;
}

class ScriptTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::string url;
    if (GetParam().dialect == "sqlite") {
      file_ = fs::temp_directory_path() / ("sluice_slt_" + std::to_string(getpid()) + ".db");
      RemoveFiles();
      url = "sqlite:" + file_.string();
    } else {
      database_ = std::make_unique<testing::PostgresTestDatabase>();
      if (database_->url().empty()) {
        GTEST_SKIP() << "no PostgreSQL server";
      }
      url = database_->url();
    }
    auto database = catalog::OpenDatabase(url);
    ASSERT_TRUE(database.ok()) << database.status().ToString();
    opened_ = std::move(*database);
  }
  void TearDown() override {
    opened_ = {};
    database_.reset();
    RemoveFiles();
  }
  void RemoveFiles() const {
    if (!file_.empty()) {
      for (const char* suffix : {"", "-wal", "-shm"}) {
        fs::remove(file_.string() + suffix);
      }
    }
  }
  // Only one of the two writes new expectations; otherwise they would race.
  bool Rewrites() const { return slt::UpdateGolden() && GetParam().dialect == "sqlite"; }

  fs::path file_;
  std::unique_ptr<testing::PostgresTestDatabase> database_;
  catalog::Database opened_;
};

class SltTest : public ScriptTest {};

TEST_P(SltTest, AnswersAsWritten) {
  const std::string& path = GetParam().path;
  const slt::Outcome outcome =
      slt::RunSlt(fs::path(path).filename().string(), slt::ReadFile(path), opened_);
  if (outcome.skipped) {
    GTEST_SKIP() << "what it requires is not there";
  }
  if (Rewrites()) {
    std::ofstream(path, std::ios::binary) << outcome.rewritten;
  }
  for (const slt::Mismatch& mismatch : outcome.mismatches) {
    ADD_FAILURE() << mismatch.place << "\n" << mismatch.text;
  }
}

INSTANTIATE_TEST_SUITE_P(Sql, SltTest, ::testing::ValuesIn(CasesOf("/tests/sql", ".slt")), NameOf);

class ExampleTest : public ScriptTest {};

// Metrics may differ in the last digits if vector units add in another order.
constexpr double kTolerance = 0.02;

TEST_P(ExampleTest, AnswersAsItsExpectedFileSays) {
  const fs::path path = GetParam().path;
  const fs::path first = path.parent_path() / "01_load.sql";
  if (path.stem() == "main_job") {  // scripts/quickstart creates its tables
    for (const char* table : {"employee", "census_train", "census_test"}) {
      const slt::Outcome made = slt::RunSlt(
          "main_job", std::string("sample census 2000 INTO ") + table + " seed 1\n", opened_);
      ASSERT_TRUE(made.mismatches.empty());
    }
  } else if (path != first) {
    const std::string loaded = slt::RunForReader(slt::ReadFile(first.string()), opened_);
    ASSERT_EQ(loaded.find("ERROR"), std::string::npos) << loaded;
  }
  const std::string answer = slt::RunForReader(slt::ReadFile(path.string()), opened_);
  if (path.stem() == "main_job") {
    // PostgreSQL stores rows of different lengths where they fit: another order, another model.
    EXPECT_EQ(answer.find("ERROR"), std::string::npos) << answer;
    return;
  }
  const fs::path golden = fs::path(path).replace_extension(".expected");
  if (Rewrites()) {
    std::ofstream(golden, std::ios::binary) << answer;
    return;
  }
  const std::string expected = slt::ReadFile(golden.string());
  EXPECT_TRUE(slt::SameText(expected, answer, kTolerance)) << "expected:\n"
                                                           << expected << "answered:\n"
                                                           << answer;
}

INSTANTIATE_TEST_SUITE_P(Sql, ExampleTest, ::testing::ValuesIn(CasesOf("/sql_examples", ".sql")),
                         NameOf);

}  // namespace
}  // namespace sluice
