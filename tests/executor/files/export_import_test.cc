// EXPORT MODEL and IMPORT MODEL, between two SQLite files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/sha256.h"
#include "executor/executor.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/extended_of.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

using ::testing::HasSubstr;

class ExportImportTest : public SqliteTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SqliteTest::SetUp());
    Fill(*source_);
    auto other = catalog::OpenDatabase("sqlite:" + folder_ + "/other.db");
    ASSERT_TRUE(other.ok());
    other_source_ = std::move(other->source);
    other_catalog_ = std::move(other->catalog);
    Fill(*other_source_);
  }
  void TearDown() override {
    other_source_.reset();
    other_catalog_.reset();
    SqliteTest::TearDown();
  }
  static void Fill(catalog::DataSource& source) {
    std::string rows = "INSERT INTO t VALUES ";
    for (int i = 0; i < 300; ++i) {
      rows += (i == 0 ? "(" : ",(") + std::to_string(i % 17) + ",'c" + std::to_string(i % 7) +
              "'," + std::to_string(9007199254740992 + i % 11) + ",'" +
              (i % 17 > 8 ? "yes" : "no") + "'," + std::to_string(2000 + 3 * (i % 17)) + ")";
    }
    for (const std::string& sql :
         {std::string("CREATE TABLE t (a REAL, b TEXT, big INTEGER, y TEXT, z REAL)"), rows}) {
      const auto done = source.Execute(sql, nullptr, {});
      ASSERT_TRUE(done.ok()) << done.status().ToString();
    }
  }

  Status RunIn(catalog::DataSource& source, catalog::Catalog& catalog, const std::string& sql,
               RecordingSink* sink) {
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    const auto extended = ExtendedOf(statements.at(0));
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(*extended, source, catalog.models(), {}));
    Context context{source, catalog, "tester", sql, {}};
    context.export_root = root_;
    return executor::Execute(plan, context, *sink);
  }
  Status Run(const std::string& sql, RecordingSink* sink = nullptr) {
    RecordingSink own;
    return RunIn(*source_, *catalog_, sql, sink == nullptr ? &own : sink);
  }
  Status RunInOther(const std::string& sql, RecordingSink* sink = nullptr) {
    RecordingSink own;
    return RunIn(*other_source_, *other_catalog_, sql, sink == nullptr ? &own : sink);
  }
  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  static std::string Content(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void Write(const std::string& file, const std::string& content) {
    std::ofstream(file, std::ios::binary) << content;
  }

  std::unique_ptr<catalog::DataSource> other_source_;
  std::unique_ptr<catalog::Catalog> other_catalog_;
  std::optional<std::string> root_;
};

TEST_F(ExportImportTest, EveryKindOfModelPredictsTheSameElsewhere) {
  int number = 0;
  for (const std::string training :
       {"TO TRAIN xgboost.gbtree WITH train.num_boost_round=5 LABEL y",
        "TO TRAIN XGBRegressor WITH train.num_boost_round=5 LABEL z",
        "TO TRAIN xgboost.gblinear WITH train.num_boost_round=5 LABEL z",
        "TO TRAIN LinearClassifier LABEL y",
        "TO TRAIN DNNRegressor WITH model.hidden_units=[4], train.epoch=2 LABEL z",
        "TO TRAIN DeepFMClassifier WITH train.epoch=2 LABEL y",
        "LABEL y WITH auto.seconds=10, train.calibrate='platt'"}) {
    const bool numbers = training.find("LABEL z") != std::string::npos;
    const std::string select =
        numbers ? "SELECT a, b, big, z FROM t" : "SELECT a, b, big, y FROM t";
    const std::string model = "m" + std::to_string(++number);
    const Status trained = Run(select + " " + training + " INTO " + model);
    ASSERT_TRUE(trained.ok()) << training << trained.ToString();
    const std::string file = File(model + ".sluice");
    const Status exported = Run("EXPORT MODEL " + model + " TO '" + file + "'");
    ASSERT_TRUE(exported.ok()) << exported.ToString();
    RecordingSink imported;
    const Status status = RunInOther("IMPORT MODEL FROM '" + file + "'", &imported);
    ASSERT_TRUE(status.ok()) << training << status.ToString();
    EXPECT_EQ(imported.Cell("model"), Value(model));
    EXPECT_EQ(imported.Cell("version"), Value(int64_t{1}));
    RecordingSink here, there;
    const std::string evaluate =
        select + " TO EVALUATE " + model + " LABEL " + (numbers ? "z" : "y");
    ASSERT_TRUE(Run(evaluate, &here).ok());
    ASSERT_TRUE(RunInOther(evaluate, &there).ok());
    EXPECT_EQ(here.rows, there.rows) << training;
    RecordingSink described;
    EXPECT_TRUE(RunInOther("DESCRIBE MODEL " + model, &described).ok());
  }
}

TEST_F(ExportImportTest, AnImportIsAJobAndMakesAVersion) {
  ASSERT_TRUE(Run("SELECT a, y FROM t TO TRAIN LinearClassifier LABEL y INTO m").ok());
  const std::string file = File("m.sluice");
  ASSERT_TRUE(Run("EXPORT MODEL m:1 TO '" + file + "'").ok());
  RecordingSink sink;
  ASSERT_TRUE(Run("IMPORT MODEL FROM '" + file + "' INTO n", &sink).ok());
  ASSERT_TRUE(Run("IMPORT MODEL FROM '" + file + "' INTO n").ok());
  const auto version = catalog_->models().Find("", "n", std::nullopt);
  ASSERT_TRUE(version.ok());
  EXPECT_EQ(version->version, 2);
  EXPECT_THAT(version->lineage, HasSubstr(R"("imported_from":"m:1")"));
  EXPECT_EQ(version->metrics, catalog_->models().Find("", "m", std::nullopt)->metrics);
  const auto job = catalog_->jobs().Find(version->job);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->kind, "import");
  EXPECT_EQ(job->state, catalog::JobState::kSucceeded);
}

TEST_F(ExportImportTest, OnlyBoostedTreesHaveXgboostsFormat) {
  ASSERT_TRUE(Run("SELECT a, y FROM t TO TRAIN LinearClassifier LABEL y INTO m").ok());
  const Status refused = Run("EXPORT MODEL m TO '" + File("m.json") + "'");
  EXPECT_EQ(refused.sqlstate(), "0A000");
  EXPECT_EQ(refused.message(), "m is a LinearClassifier, and XGBoost's format holds boosted trees");
  EXPECT_FALSE(std::filesystem::exists(File("m.json")));
}

TEST_F(ExportImportTest, AFileThatIsThereStaysUnlessOverwritten) {
  ASSERT_TRUE(
      Run("SELECT a, y FROM t TO TRAIN xgboost.gbtree WITH train.num_boost_round=2 LABEL y INTO m")
          .ok());
  Write(File("m.json"), "mine");
  const Status refused = Run("EXPORT MODEL m TO '" + File("m.json") + "'");
  EXPECT_EQ(refused.sqlstate(), "58P02");
  EXPECT_EQ(Content(File("m.json")), "mine");
  ASSERT_TRUE(Run("EXPORT MODEL m OVERWRITE TO '" + File("m.json") + "'").ok());
  EXPECT_THAT(Content(File("m.json")), HasSubstr(R"("learner")"));
}

TEST_F(ExportImportTest, WhatIsNotThereIsNamed) {
  EXPECT_EQ(Run("EXPORT MODEL none TO '" + File("m.sluice") + "'").sqlstate(), "42704");
  EXPECT_EQ(Run("IMPORT MODEL FROM '" + File("none.sluice") + "'").sqlstate(), "58P01");
  root_ = "";
  EXPECT_EQ(Run("IMPORT MODEL FROM 'm.sluice'").sqlstate(), "42501");
}

TEST_F(ExportImportTest, DamagedAndForgedFilesStoreNothingAndDoNoHarm) {
  for (const std::string type : {"xgboost.gbtree WITH train.num_boost_round=2",
                                 "DNNClassifier WITH model.hidden_units=[3], train.epoch=1"}) {
    ASSERT_TRUE(Run("SELECT a, b, y FROM t TO TRAIN " + type + " LABEL y INTO m").ok());
    const std::string file = File("m.sluice");
    ASSERT_TRUE(Run("EXPORT MODEL m OVERWRITE TO '" + file + "'").ok());
    const std::string whole = Content(file);
    const std::string import = "IMPORT MODEL FROM '" + file + "' INTO n";
    std::mt19937 random(7);
    for (int i = 0; i < 60; ++i) {
      std::string damaged = whole.substr(0, random() % whole.size());
      if (i % 2 == 0) {
        damaged = whole;
        damaged[random() % whole.size()] ^= static_cast<char>(1U << (random() % 8));
      }
      Write(file, damaged);
      ASSERT_FALSE(RunInOther(import).ok());
    }
    EXPECT_EQ(other_catalog_->models().Find("", "n", std::nullopt).status().sqlstate(), "42704");
    constexpr size_t kChecksumBytes = 64;
    for (int i = 0; i < 300; ++i) {
      std::string forged = whole.substr(0, whole.size() - kChecksumBytes);
      for (size_t n = random() % 3; n < 3; ++n) {
        forged[random() % forged.size()] = static_cast<char>(random());
      }
      catalog::Sha256 sha256;
      sha256.Add(forged);
      Write(file, forged + sha256.Hex());
      if (RunInOther(import).ok()) {  // then it can be used, or is refused
        RunInOther("SELECT a, b, y FROM t TO EVALUATE n LABEL y").ok();
        RunInOther("DESCRIBE MODEL n").ok();
        ASSERT_TRUE(RunInOther("DROP MODEL n").ok());
      }
    }
  }
}

}  // namespace
}  // namespace sluice::executor
