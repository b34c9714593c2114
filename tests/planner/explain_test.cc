// EXPLAIN texts, golden: tests/planner/golden/*.golden hold a statement, "--", its EXPLAIN, "==".
// UPDATE_GOLDEN=1 rewrites them: review the diff.
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "models/model.pb.h"
#include "planner/explain.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/planner/plan_of.h"

namespace sluice::planner {
namespace {

namespace fs = std::filesystem;

FakeTable Clicks() {
  FakeTable table;
  table.schema.columns = {
      ColumnOf("at", DataType::kTimestamp), ColumnOf("user_id", DataType::kText),
      ColumnOf("price", DataType::kDouble), ColumnOf("tags", DataType::kText),
      ColumnOf("vector", DataType::kText),  ColumnOf("w", DataType::kDouble),
      ColumnOf("clicked", DataType::kInt64)};
  for (int64_t i = 0; i < 2000; ++i) {
    table.rows.push_back({Value(i * 7'200'000'000), Value("user" + std::to_string(i * 7919)),
                          i % 5 == 0 ? Value() : Value(static_cast<double>(i % 100)),
                          Value(std::string(i % 2 == 0 ? "1,5,9" : "3")),
                          Value(std::string("0.5,1,2")), Value(1.0), Value(i % 3 == 0 ? 1L : 0L)});
  }
  return table;
}

class Explain : public ::testing::Test {
 protected:
  Explain() {
    source_.tables["census"] = SmallCensus(400);
    source_.tables["full"] = FullCensus(400);
    source_.tables["clicks"] = Clicks();
    source_.tables["huge"] = SmallCensus(400);
    source_.tables["huge"].claimed_rows = 3'000'000'000;
    source_.tables["huge"].classes_known = false;
    const Result<plan::Plan> trained =
        Plan("SELECT * FROM census TO TRAIN LinearClassifier LABEL income INTO census_model");
    SLUICE_CHECK(trained.ok(), trained.status().ToString());
    catalog::ModelVersion version;
    version.name = "census_model";
    version.plan = trained->train().SerializeAsString();
    SLUICE_CHECK(source_.models().Put(version, "", false).ok(), "the fake store takes it");
    const Result<plan::Plan> trees = Plan("SELECT * FROM census LABEL income INTO trees");
    version.name = "trees";
    version.plan = trees->train().SerializeAsString();
    SLUICE_CHECK(source_.models().Put(version, "", false).ok(), "the fake store takes it");
  }

  Result<plan::Plan> Plan(const std::string& text) {
    Options options;
    options.local_cpus = 4;
    return PlanOf(text, source_, options);
  }

  FakeSource source_;
};

struct Golden {
  std::string statement, text;
};

std::vector<Golden> ReadGolden(const fs::path& path) {
  std::vector<Golden> cases;
  std::ifstream in(path);
  Golden one;
  std::string* part = &one.statement;
  for (std::string line; std::getline(in, line);) {
    if (line == "--") {
      part = &one.text;
    } else if (line == "==") {
      cases.push_back(std::exchange(one, {}));
      part = &one.statement;
    } else {
      *part += line + "\n";
    }
  }
  return cases;
}

TEST_F(Explain, GoldenTexts) {
  const char* update = std::getenv("UPDATE_GOLDEN");
  int seen = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(SLUICE_SOURCE_DIR) / "tests/planner/golden")) {
    std::ostringstream rewritten;
    for (const Golden& golden : ReadGolden(entry.path())) {
      SCOPED_TRACE(golden.statement);
      ++seen;
      const Result<plan::Plan> plan = Plan(golden.statement);
      const std::string text = plan.ok() ? ExplainText(*plan) : plan.status().ToString() + "\n";
      rewritten << golden.statement << "--\n" << text << "==\n";
      if (update == nullptr) {
        EXPECT_EQ(text, golden.text);
      }
      if (plan.ok()) {
        rapidjson::Document json;
        json.Parse(ExplainJson(*plan).c_str());
        EXPECT_FALSE(json.HasParseError()) << ExplainJson(*plan);
      }
    }
    if (update != nullptr) {
      std::ofstream(entry.path()) << rewritten.str();
    }
  }
  EXPECT_GT(seen, 8);
}

TEST_F(Explain, JsonSaysWhatTheTextSays) {
  const Result<plan::Plan> plan = Plan("SELECT * FROM census LABEL income INTO m");
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  rapidjson::Document json;
  json.Parse(ExplainJson(*plan).c_str());
  ASSERT_FALSE(json.HasParseError());
  const auto& train = json["train"];
  EXPECT_EQ(train["rows"].GetInt64(), 400);
  EXPECT_STREQ(train["model"]["type"].GetString(), "xgboost.gbtree");
  EXPECT_EQ(train["features"].Size(), 4U);
  EXPECT_EQ(train["label"]["classes"].Size(), 2U);
  EXPECT_STREQ(train["strategy"]["kind"].GetString(), "LOCAL");
}

// Rows that memory has no room for, if they are read more than once.
TEST_F(Explain, SaysWhatIsKeptOnDisks) {
  const auto kept = [&](const std::string& table, const std::string& attributes) -> std::string {
    const Result<plan::Plan> plan =
        Plan("SELECT * FROM " + table + " TO TRAIN DNNClassifier WITH " + attributes +
             " LABEL income INTO m");
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    const std::string text = ExplainText(*plan);
    const std::string name = "\n  kept       ";
    const size_t begin = text.find(name);
    if (begin == std::string::npos) {
      return "";
    }
    return text.substr(begin + name.size(), text.find('\n', begin + 1) - begin - name.size());
  };
  const std::string all = "about 55.9 GB of rows in local files, for later epochs";
  EXPECT_EQ(kept("huge", "train.epoch=2"), all + ", where that is faster than the database");
  EXPECT_EQ(kept("huge", "train.epoch=2, train.disk_cache=true"), all);
  EXPECT_EQ(kept("huge", "train.epoch=2, train.disk_cache=false"), "");
  EXPECT_EQ(kept("huge", "train.epoch=1"), "");
  EXPECT_EQ(kept("census", "train.epoch=2, train.disk_cache=true"), "") << "memory has room";
}

TEST_F(Explain, SamePlanTwice) {
  const std::string text = "SELECT * FROM clicks LABEL clicked INTO m";
  EXPECT_EQ(Plan(text)->SerializeAsString(), Plan(text)->SerializeAsString());
}

TEST_F(Explain, ClassesThatStatisticsHaveMissedAreAskedFor) {
  const Result<plan::Plan> plan =
      Plan("SELECT * FROM huge TO TRAIN LinearClassifier LABEL income INTO m");
  ASSERT_TRUE(plan.ok()) << plan.status().ToString();
  EXPECT_EQ(source_.class_queries, 1);
  EXPECT_EQ(plan->train().model().features().label().classes(1), ">50K");
  EXPECT_EQ(plan->train().strategy().kind(), plan::Strategy::PARAMETER_SERVER);
}

}  // namespace
}  // namespace sluice::planner
