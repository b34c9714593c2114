#include "executor/scoring/scorer_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/extended_of.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

class ScorerCacheTest : public SqliteTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SqliteTest::SetUp());
    Execute(
        "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <"
        " 300) SELECT i % 17 AS a, 2.0 * (i % 17) AS y FROM n");
  }
  void Execute(const std::string& sql) {
    const auto done = source_->Execute(sql, nullptr, {});
    ASSERT_TRUE(done.ok()) << done.status().ToString();
  }
  void Train(const std::string& model) {
    const std::string sql = "SELECT a, y FROM t TO TRAIN LinearRegressor LABEL y INTO " + model;
    const auto statements = parser::Parse(sql);
    ASSERT_TRUE(statements.ok());
    const auto plan =
        planner::MakePlan(*ExtendedOf(statements->at(0)), *source_, catalog_->models(), {});
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    Context context{*source_, *catalog_, "tester", sql, {}};
    RecordingSink sink;
    const Status trained = executor::Execute(*plan, context, sink);
    ASSERT_TRUE(trained.ok()) << trained.ToString();
  }
  catalog::ModelVersion Find(const std::string& model) {
    return catalog_->models().Find("", model, std::nullopt).value();
  }
  Status Load(const catalog::ModelVersion& version) {
    return cache_.Load(catalog_->models(), version, int64_t{1} << 30).status();
  }

  ScorerCache cache_;
};

TEST_F(ScorerCacheTest, AModelIsReadOnce) {
  Train("m");
  const catalog::ModelVersion version = Find("m");
  ASSERT_TRUE(Load(version).ok());
  Execute("DELETE FROM sluice_model_chunks");
  EXPECT_TRUE(Load(version).ok());
  EXPECT_FALSE(Scorer::Load(catalog_->models(), version, int64_t{1} << 30).ok());
}

TEST_F(ScorerCacheTest, AnotherPlanIsAnotherModel) {
  Train("m");
  catalog::ModelVersion version = Find("m");
  ASSERT_TRUE(Load(version).ok());
  version.plan = "no plan";
  EXPECT_FALSE(Load(version).ok());
}

TEST_F(ScorerCacheTest, WhatWasUsedLongestAgoMakesRoom) {
  std::vector<catalog::ModelVersion> models;
  for (const char* const name : {"a", "b", "c"}) {
    Train(name);
    models.push_back(Find(name));
  }
  const auto bytes = [](const catalog::ModelVersion& model) {
    return model.weights_bytes + static_cast<int64_t>(model.plan.size());
  };
  ScorerCache two(bytes(models[0]) + std::max(bytes(models[1]), bytes(models[2])));
  const auto loads = [&](const catalog::ModelVersion& model) {
    return two.Load(catalog_->models(), model, int64_t{1} << 30).ok();
  };
  for (const int i : {0, 1, 0, 2}) {
    ASSERT_TRUE(loads(models[i]));
  }
  Execute("DELETE FROM sluice_model_chunks");
  EXPECT_TRUE(loads(models[0]));
  EXPECT_FALSE(loads(models[1]));
  EXPECT_TRUE(loads(models[2]));
}

}  // namespace
}  // namespace sluice::executor
