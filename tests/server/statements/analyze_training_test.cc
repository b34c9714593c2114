#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/profile.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/support/recording_sink.h"

namespace sluice::server {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::StartsWith;

constexpr char kTraining[] =
    "SELECT a, y FROM t TO TRAIN DNNClassifier WITH model.hidden_units=[4], train.epoch=2, "
    "split.fraction=0.2 LABEL y INTO m";

class AnalyzeTrainingTest : public ::testing::Test {
 protected:
  AnalyzeTrainingTest() {
    std::string pattern = ::testing::TempDir() + "/sluice-analyze-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    catalog::Database database =
        catalog::OpenDatabase("sqlite:" + (folder_ / "test.db").string()).value();
    source_ = std::move(database.source);
    catalog_ = std::move(database.catalog);
    Run("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
        "i < 5000) SELECT (i * 37) % 101 AS a, (i * 37) % 101 > 50 AS y FROM n");
  }
  ~AnalyzeTrainingTest() override {
    source_.reset();
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }
  RecordingSink Run(const std::string& sql) {
    Session session(*source_, *catalog_, "tester");
    RecordingSink sink;
    const Status status = RunScript(sql, session, sink, {});
    EXPECT_TRUE(status.ok()) << status.ToString();
    return sink;
  }
  std::vector<std::string> Lines(const std::string& sql) {
    std::vector<std::string> lines;
    for (const std::vector<Value>& row : Run(sql).rows) {
      lines.push_back(std::get<std::string>(row.at(0)));
    }
    return lines;
  }
  // The section "profile" of SHOW JOB.
  std::map<std::string, std::string> ProfileOfJob(const std::string& job) {
    std::map<std::string, std::string> profile;
    for (const std::vector<Value>& row : Run("SHOW JOB " + job).rows) {
      if (std::get<std::string>(row.at(0)) == "profile") {
        profile[std::get<std::string>(row.at(1))] = std::get<std::string>(row.at(2));
      }
    }
    return profile;
  }

  std::filesystem::path folder_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
};

TEST_F(AnalyzeTrainingTest, ShowsThePlanTheResultAndTheProfile) {
  const std::vector<std::string> lines = Lines(std::string("EXPLAIN ANALYZE ") + kTraining);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0], "Train DNNClassifier into m");
  EXPECT_THAT(lines, Contains("Result:"));
  EXPECT_THAT(lines, Contains("  version       1"));
  EXPECT_THAT(lines, Contains("Profile:"));
  for (const char* phase : {"planning", "start", "database", "transforming", "batches", "learning",
                            "exchange", "optimizer", "evaluation", "finishing", "storing"}) {
    EXPECT_THAT(lines, Contains(AllOf(StartsWith(std::string("  ") + phase + " "), HasSubstr("%"))))
        << phase;
  }
  EXPECT_THAT(lines.back(), StartsWith("  total "));
}

TEST_F(AnalyzeTrainingTest, LeavesTheModelAsTheTrainingItselfWould) {
  const std::string analyze = std::string("EXPLAIN ANALYZE ") + kTraining;
  Run(analyze);
  Run(kTraining);
  const auto digest = [this](const std::string& version) {
    return catalog_->models().Find("", "m", std::stoll(version)).value();
  };
  const catalog::ModelVersion analyzed = digest("1"), trained = digest("2");
  EXPECT_EQ(catalog_->models().LoadWeights(analyzed).value(),
            catalog_->models().LoadWeights(trained).value());
  EXPECT_EQ(analyzed.statement, trained.statement);
}

TEST_F(AnalyzeTrainingTest, AsJson) {
  const std::vector<std::string> lines =
      Lines(std::string("EXPLAIN (ANALYZE, FORMAT JSON) ") + kTraining);
  ASSERT_EQ(lines.size(), 1U);
  rapidjson::Document json;
  ASSERT_FALSE(json.Parse(lines[0].c_str()).HasParseError()) << lines[0];
  EXPECT_TRUE(json["plan"].HasMember("train"));
  EXPECT_STREQ(json["result"]["version"].GetString(), "1");
  EXPECT_EQ(json["profile"].MemberCount(), kPhases);
  EXPECT_GT(json["profile"]["learning"].GetDouble(), 0);
}

TEST_F(AnalyzeTrainingTest, EveryTrainingHasAProfileWithItsJob) {
  for (const char* type :
       {"LinearClassifier WITH train.epoch=1", "LinearClassifier WITH split.fraction=0.2",
        "xgboost.gbtree WITH objective='binary:logistic', "
        "train.num_boost_round=3",
        "DNNClassifier WITH model.hidden_units=[4], train.epoch=1"}) {
    const RecordingSink sink =
        Run("SELECT a, y FROM t TO TRAIN " + std::string(type) + " LABEL y INTO m");
    const int64_t job = std::get<int64_t>(sink.rows.at(0).at(2));
    const std::map<std::string, std::string> profile = ProfileOfJob(std::to_string(job));
    for (const char* phase : {"planning", "start", "database", "learning", "storing", "total"}) {
      EXPECT_THAT(profile, Contains(Key(phase))) << type;
    }
  }
}

TEST_F(AnalyzeTrainingTest, AJobOfAnEarlierVersionShowsNone) {
  Run(kTraining);
  Run("DELETE FROM sluice_job_metrics");
  EXPECT_TRUE(ProfileOfJob("1").empty());
}

}  // namespace
}  // namespace sluice::server
