// PREDICT and EVALUATE tell how their rows are unlike those of the training.
#include "executor/scoring/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stop_token>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "models/model.pb.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/extended_of.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

using ::testing::Not;

class DriftTest : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    Make("t", 1000, "i % 97 AS a, i % 13 / 2.0 AS b, 'c' || (i % 3) AS c, i % 2 AS y");
    Run("SELECT a, b, c, y FROM t TO TRAIN LinearClassifier WITH train.epoch=1 LABEL y INTO m");
  }
  // A table with the numbers i from 0.
  void Make(const std::string& table, int rows, const std::string& columns) {
    const std::string sql = "CREATE TABLE " + table +
                            " AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
                            "WHERE i < " +
                            std::to_string(rows - 1) + ") SELECT " + columns + " FROM n";
    ASSERT_TRUE(source_->Execute(sql, nullptr, {}).ok()) << sql;
  }
  RecordingSink Run(const std::string& sql) {
    RecordingSink sink;
    const auto statements = parser::Parse(sql).value();
    Context context{*source_, *catalog_, "tester", sql, stop_.get_token()};
    const auto plan =
        planner::MakePlan(*ExtendedOf(statements.front()), *source_, catalog_->models(), {});
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    const Status ran = Execute(*plan, context, sink);
    EXPECT_TRUE(ran.ok()) << ran.ToString();
    return sink;
  }
  std::vector<std::string> NoticesOf(const std::string& table) {
    return Run("SELECT a, b, c FROM " + table + " TO PREDICT y USING m").notices;
  }

  std::stop_source stop_;
};

TEST_F(DriftTest, TheSameDistributionIsNotTold) {
  EXPECT_THAT(NoticesOf("t"), Not(Contains(HasSubstr("unlike"))));
  Make("later", 333, "(i * 7 + 5) % 97 AS a, (i + 4) % 13 / 2.0 AS b, 'c1' AS c");
  EXPECT_THAT(NoticesOf("later"), Not(Contains(HasSubstr("unlike"))));
}

TEST_F(DriftTest, NullsWhereThereWereNone) {
  Make("holes", 300, "CASE WHEN i % 10 > 0 THEN i % 97 END AS a, i % 13 / 2.0 AS b, 'c1' AS c");
  EXPECT_THAT(NoticesOf("holes"),
              Contains("a is unlike the training's: 10 % NULL, which it never was"));
}

TEST_F(DriftTest, NumbersOutside) {
  Make("beyond", 300,
       "i % 97 AS a, CASE i % 20 WHEN 0 THEN -1 ELSE i % 13 / 2.0 END AS b, 'c1' AS c");
  EXPECT_THAT(NoticesOf("beyond"), Contains("b is unlike the training's: 5 % outside of 0 to 6"));
}

TEST_F(DriftTest, AShiftInsideTheRange) {
  Make("low", 300, "i % 20 AS a, i % 13 / 2.0 AS b, 'c1' AS c");
  const auto notices = NoticesOf("low");
  EXPECT_THAT(notices, Contains(HasSubstr("a is unlike the training's: shifted (stability index")));
  EXPECT_THAT(notices, Contains(HasSubstr("mean 9.5 instead of 46.99")));
  EXPECT_THAT(notices, Not(Contains(HasSubstr("b is unlike"))));
}

// Of 300 rows of the same distribution one or two are outside of what a sample of 1,000 showed.
TEST_F(DriftTest, AFewRowsOutsideAreChance) {
  Make("edge", 300, "CASE WHEN i < 3 THEN 97 ELSE i % 97 END AS a, i % 13 / 2.0 AS b, 'c1' AS c");
  EXPECT_THAT(NoticesOf("edge"), Not(Contains(HasSubstr("unlike"))));
}

// A row or two are always unlike a thousand.
TEST_F(DriftTest, AFewRowsAreNotJudged) {
  Make("few", 19, "1000 AS a, NULL AS b, 'c1' AS c");
  EXPECT_THAT(NoticesOf("few"), Not(Contains(HasSubstr("unlike"))));
}

TEST_F(DriftTest, EvaluateTellsIt) {
  Make("shifted", 300, "i % 97 + 500 AS a, i % 13 / 2.0 AS b, 'c1' AS c, i % 2 AS y");
  EXPECT_THAT(Run("SELECT a, b, c, y FROM shifted TO EVALUATE m").notices,
              Contains(HasSubstr("a is unlike the training's: 100 % outside of 0 to 96, shifted")));
}

TEST_F(DriftTest, EvaluateTellsThatItsRowsAreTheTrainings) {
  constexpr char kTold[] = "the model was trained on this select";
  EXPECT_THAT(Run("SELECT a, b, c, y FROM t TO EVALUATE m").notices, Contains(HasSubstr(kTold)));
  EXPECT_THAT(Run("SELECT a, b, c, y FROM t WHERE a > 3 TO EVALUATE m").notices,
              Not(Contains(HasSubstr(kTold))));
}

TEST_F(DriftTest, TheReportHasARowForEachColumnAndNeedsNoLabel) {
  Make("next", 200, "i % 97 AS a, CASE WHEN i % 2 = 0 THEN 9.0 END AS b, 'd' AS c");
  const RecordingSink sink =
      Run("SELECT a, b, c FROM next TO EVALUATE m WITH validation.report='drift'");
  EXPECT_EQ(
      sink.schema.Names(),
      (std::vector<std::string>{"column_name", "null_share", "trained_null_share", "unknown_share",
                                "outside_share", "mean", "trained_mean", "stability_index"}));
  ASSERT_EQ(sink.rows.size(), 3U);
  EXPECT_EQ(sink.rows[0][0], Value("b"));
  EXPECT_EQ(sink.rows[0][1], Value(0.5));
  EXPECT_EQ(sink.rows[0][4], Value(0.5));
  EXPECT_EQ(sink.rows[0][5], Value(9.0));
  EXPECT_EQ(sink.rows[1][0], Value("a"));
  EXPECT_EQ(sink.rows[2][0], Value("c"));
  EXPECT_EQ(sink.rows[2][3], Value(1.0));
  EXPECT_TRUE(IsNull(sink.rows[2][7]));
}

TEST_F(DriftTest, TreesTellIt) {
  Run("SELECT a, b, c, y FROM t TO TRAIN xgboost.gbtree WITH train.num_boost_round=2 LABEL y INTO "
      "m");
  Make("beyond", 100, "i + 500 AS a, i % 13 / 2.0 AS b, 'c1' AS c");
  EXPECT_THAT(NoticesOf("beyond"),
              Contains(HasSubstr("a is unlike the training's: 100 % outside")));
}

// What a stored plan says of the training may be anything.
TEST_F(DriftTest, UnusableSpreadsAreUnknown) {
  Make("beyond", 100, "i + 500 AS a, i % 13 / 2.0 AS b, 'c1' AS c");
  EXPECT_THAT(NoticesOf("beyond"), Contains(HasSubstr("a is unlike the training's")));
  catalog::ModelVersion version = catalog_->models().Find("", "m", std::nullopt).value();
  const std::string weights = catalog_->models().LoadWeights(version).value();
  plan::TrainPlan plan;
  ASSERT_TRUE(plan.ParseFromString(version.plan));
  models::InputColumn* input = plan.mutable_model()->mutable_features()->mutable_inputs(0);
  ASSERT_EQ(input->name(), "a");
  for (const std::vector<double>& bounds :
       {std::vector<double>{2, 1}, {1, 1}, {NAN, 1}, {1, 2, 3}, {}}) {
    models::NumberSpread* spread = input->mutable_spread();
    spread->mutable_bounds()->Assign(bounds.begin(), bounds.end());
    const std::vector<double> shares = {0.4, 0.5};
    spread->mutable_shares()->Assign(shares.begin(), shares.end());
    version.plan = plan.SerializeAsString();
    ASSERT_TRUE(catalog_->models().Put(version, weights, false).ok());
    EXPECT_THAT(NoticesOf("beyond"), Not(Contains(HasSubstr("a is unlike the training's"))));
  }
}

}  // namespace
}  // namespace sluice::executor
