// Train, predict, evaluate and report from SQL text to answer, in this process, on a SQLite file.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/extended_of.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

class StatementsTest : public SqliteTest {
 protected:
  Status Run(const std::string& sql, RecordingSink* sink) {
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    for (const parser::Statement& statement : statements) {
      if (const auto* plain = std::get_if<parser::PlainStatement>(&statement)) {
        RETURN_IF_ERROR(source_->Execute(plain->text, nullptr, {}).status());
        continue;
      }
      const auto extended = ExtendedOf(statement);
      ASSIGN_OR_RETURN(const plan::Plan plan,
                       planner::MakePlan(*extended, *source_, catalog_->models(), {}));
      Context context{*source_, *catalog_, "tester", sql, stop_.get_token()};
      RETURN_IF_ERROR(Execute(plan, context, *sink));
    }
    return OkStatus();
  }

  Status Run(const std::string& sql) {
    RecordingSink sink;
    return Run(sql, &sink);
  }

  // y = 1 where a + noise > 0 and the color is not "red"; z = 3 a + 1.
  void MakePoints(int rows) {
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    std::string sql =
        "CREATE TABLE points (id INTEGER PRIMARY KEY, a REAL, color TEXT, y TEXT, z REAL);"
        "INSERT INTO points(a, color, y, z) VALUES ";
    const std::vector<std::string> colors = {"red", "green", "blue"};
    for (int i = 0; i < rows; ++i) {
      const double a = normal(random);
      const std::string& color = colors[random() % 3];
      const bool yes = a + 0.3 * normal(random) > 0 && color != "red";
      sql += (i == 0 ? "(" : ",(") + std::to_string(a) + ",'" + color + "','" +
             (yes ? "yes" : "no") + "'," + std::to_string(3 * a + 1) + ")";
    }
    ASSERT_TRUE(Run(sql).ok());
  }

  int64_t Count(const std::string& select) {
    class Counter final : public catalog::RowReceiver {
     public:
      Status Header(const Schema&) override { return OkStatus(); }
      Status Rows(const RowBatch& batch) override {
        value = std::get<int64_t>(batch.columns[0].ValueAt(0));
        return OkStatus();
      }
      int64_t value = -1;
    } counter;
    const auto done = source_->Execute(select, &counter, {});
    EXPECT_TRUE(done.ok()) << done.status().ToString();
    return counter.value;
  }

  std::stop_source stop_;
};

constexpr char kTrainLinear[] =
    "SELECT a, color, y FROM points TO TRAIN LinearClassifier WITH train.epoch=5, "
    "train.batch_size=32 LABEL y INTO m;";

TEST_F(StatementsTest, TrainAnswersOneRowAndStoresAVersion) {
  MakePoints(1000);
  RecordingSink sink;
  const Status status = Run(kTrainLinear, &sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(sink.tag, "TRAIN");
  EXPECT_EQ(std::get<std::string>(sink.Cell("model")), "m");
  EXPECT_EQ(sink.Number("version"), 1);
  EXPECT_EQ(sink.Number("epochs"), 5);
  EXPECT_GT(sink.Number("auc"), 0.9);
  // The split sets some of the 1,000 rows aside; both parts together are all of them.
  const auto version = catalog_->models().Find("", "m", std::nullopt);
  ASSERT_TRUE(version.ok());
  EXPECT_EQ(version->rows, static_cast<int64_t>(sink.Number("rows")) * 5);
  const auto job = catalog_->jobs().Find(version->job);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(job->rows_trained, version->rows);
}

TEST_F(StatementsTest, TheSameStatementMakesTheSameBytes) {
  MakePoints(500);
  ASSERT_TRUE(Run(kTrainLinear).ok());
  ASSERT_TRUE(Run(kTrainLinear).ok());
  const auto versions = catalog_->models().Versions("", "m");
  ASSERT_TRUE(versions.ok());
  ASSERT_EQ(versions->size(), 2U);
  EXPECT_EQ((*versions)[0].weights_sha256, (*versions)[1].weights_sha256);
}

TEST_F(StatementsTest, EvaluateAndPredictUseTheStoredFeatures) {
  MakePoints(1000);
  ASSERT_TRUE(Run(kTrainLinear).ok());
  RecordingSink evaluated;
  Status status = Run("SELECT * FROM points TO EVALUATE m INTO scores;", &evaluated);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(evaluated.schema.columns[0].name, "loss");
  EXPECT_GT(evaluated.Number("accuracy"), 0.8);
  EXPECT_EQ(Count("SELECT count(*) FROM scores"), 1);

  status = Run("SELECT id, a, color FROM points TO PREDICT scored.y USING m;");
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Count("SELECT count(*) FROM scored"), 1000);
  const double right = static_cast<double>(
      Count("SELECT count(*) FROM scored s JOIN points p ON p.id = s.id WHERE s.y = p.y"));
  EXPECT_NEAR(right / 1000, evaluated.Number("accuracy"), 1e-9);
}

TEST_F(StatementsTest, PredictToTheClientStreamsRowsWithProbabilities) {
  MakePoints(300);
  ASSERT_TRUE(Run(kTrainLinear).ok());
  RecordingSink sink;
  const Status status =
      Run("SELECT id, a, color FROM points WHERE id <= 10 TO PREDICT y "
          "WITH predict.extra_outputs=\"probability,probabilities\" USING m;",
          &sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_EQ(sink.rows.size(), 10U);
  EXPECT_EQ(sink.schema.Names(), (std::vector<std::string>{"id", "a", "color", "y", "probability",
                                                           "probability_no", "probability_yes"}));
  for (const auto& row : sink.rows) {
    EXPECT_EQ(std::get<std::string>(row[3]) == "yes", std::get<double>(row[4]) >= 0.5);
    EXPECT_EQ(std::get<double>(row[4]), std::get<double>(row[6]));
    EXPECT_NEAR(std::get<double>(row[5]) + std::get<double>(row[6]), 1, 1e-9);
    EXPECT_TRUE(std::get<std::string>(row[3]) == "yes" || std::get<std::string>(row[3]) == "no");
  }
}

// SQLite's statements and tables have at most 2,000 columns.
TEST_F(StatementsTest, AsManyColumnsArePassedOnAsAreRead) {
  const auto columns = [](const std::string& prefix, int count) {
    std::string list;
    for (int c = 1; c <= count; ++c) {
      list += fmt::format(", i * {0} % 13 AS {1}{0}", c, prefix);
    }
    return list;
  };
  Status status = Run(
      "CREATE TABLE wide AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE "
      "i < 40) SELECT i AS y" +
      columns("c", 1'100) + " FROM n;" +
      "SELECT * FROM wide TO TRAIN LinearRegressor WITH train.epoch=1 LABEL y INTO w;"
      "SELECT * FROM wide TO PREDICT scored.y USING w;");
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Count("SELECT count(*) FROM scored"), 40);
  status =
      Run("SELECT y, c1 FROM wide TO TRAIN LinearRegressor WITH train.epoch=1 LABEL y INTO w;"
          "SELECT c.*" +
          columns("d", 899) +
          " FROM wide AS c, (SELECT 1 AS i) AS n TO PREDICT "
          "scored.y USING w;");
  EXPECT_EQ(status.sqlstate(), "54011") << status.ToString();
  EXPECT_NE(status.ToString().find("the result has 2001 columns"), std::string::npos);
}

TEST_F(StatementsTest, UnseenValuesAndNullsAreScoredNotRefused) {
  MakePoints(300);
  ASSERT_TRUE(Run(kTrainLinear).ok());
  RecordingSink sink;
  const Status status = Run("SELECT NULL AS a, 'violet' AS color TO PREDICT y USING m;", &sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(sink.rows.size(), 1U);
}

TEST_F(StatementsTest, ARegressorAnswersInTheLabelsScale) {
  MakePoints(500);
  RecordingSink sink;
  Status status = Run(
      "SELECT a, z FROM points TO TRAIN LinearRegressor WITH train.epoch=60, train.batch_size=16 "
      "LABEL z INTO r;",
      &sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  RecordingSink evaluated;
  status = Run("SELECT a, z FROM points TO EVALUATE r;", &evaluated);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_LT(evaluated.Number("rmse"), 0.3);  // z has a standard deviation of 3
  EXPECT_GT(evaluated.Number("r2"), 0.98);
}

TEST_F(StatementsTest, TreesTrainPredictAndReport) {
  MakePoints(1000);
  RecordingSink sink;
  Status status =
      Run("SELECT a, color, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=20, "
          "max_depth=3 LABEL y INTO t;",
          &sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GT(sink.Number("auc"), 0.9);
  RecordingSink report;
  status = Run("SELECT * FROM points TO EXPLAIN t USING XGBoostExplainer INTO why;", &report);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GE(report.rows.size(), 2U);
  EXPECT_EQ(Count("SELECT count(*) FROM why"), static_cast<int64_t>(report.rows.size()));
}

TEST_F(StatementsTest, ContinuingFromAModelStartsWhereItEnded) {
  MakePoints(1000);
  RecordingSink first;
  ASSERT_TRUE(Run(kTrainLinear, &first).ok());
  RecordingSink second;
  const Status status =
      Run("SELECT a, color, y FROM points TO TRAIN LinearClassifier WITH train.epoch=1, "
          "train.batch_size=32 LABEL y USING m INTO m;",
          &second);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(second.Number("version"), 2);
  EXPECT_LT(second.Number("loss"), first.Number("loss") * 1.05);
}

TEST_F(StatementsTest, AFailedPredictLeavesTheOldTableAsItWas) {
  MakePoints(300);
  ASSERT_TRUE(Run(kTrainLinear).ok());
  ASSERT_TRUE(
      Run("SELECT id, a, color FROM points WHERE id <= 42 TO PREDICT scored.y USING m;").ok());
  // The last row's cell is not a number, which is noticed only after rows were written.
  ASSERT_TRUE(Run("CREATE TABLE bad (id INTEGER, a REAL, color TEXT);"
                  "INSERT INTO bad SELECT id, a, color FROM points;"
                  "UPDATE bad SET a = 'not a number' WHERE id = 300;")
                  .ok());
  const Status status = Run("SELECT * FROM bad TO PREDICT scored.y USING m;");
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(Count("SELECT count(*) FROM scored"), 42);
  EXPECT_EQ(Count("SELECT count(*) FROM sqlite_master WHERE name LIKE '%sluice_new%'"), 0);
  const auto jobs = catalog_->jobs().List();
  ASSERT_TRUE(jobs.ok());
  ASSERT_FALSE(jobs->empty());
  EXPECT_EQ(jobs->front().state, catalog::JobState::kFailed);
}

TEST_F(StatementsTest, ACancelledTrainingLeavesNoVersion) {
  MakePoints(2000);
  RecordingSink sink;
  sink.on_progress = [this] { stop_.request_stop(); };
  const Status status =
      Run("SELECT a, color, y FROM points TO TRAIN LinearClassifier WITH train.epoch=100000, "
          "train.batch_size=32 LABEL y INTO m;",
          &sink);
  EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  EXPECT_FALSE(catalog_->models().Find("", "m", std::nullopt).ok());
  const auto jobs = catalog_->jobs().List();
  ASSERT_TRUE(jobs.ok());
  ASSERT_FALSE(jobs->empty());
  EXPECT_EQ(jobs->front().state, catalog::JobState::kCancelled);
}

TEST_F(StatementsTest, AClientThatDoesNotReadHoldsUpNoTraining) {
  MakePoints(2000);
  const auto other = catalog::OpenCatalog("sqlite:" + folder_ + "/test.db").value();
  RecordingSink sink;
  bool stored = false;
  sink.on_progress = [&] {  // reads nothing until the model is there, or a minute has passed
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!stored && std::chrono::steady_clock::now() < until) {
      stored = other->models().Find("", "m", std::nullopt).ok();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  };
  const Status status = Run(kTrainLinear, &sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_FALSE(sink.progress.empty());
  EXPECT_TRUE(stored);
}

TEST_F(StatementsTest, NanAndInfinityInTheDataCountAsNull) {
  MakePoints(300);
  ASSERT_TRUE(Run("UPDATE points SET a = 9e999 WHERE id % 50 = 0;").ok());
  RecordingSink sink;
  const Status status = Run(kTrainLinear, &sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(std::isfinite(sink.Number("loss")));
}

}  // namespace
}  // namespace sluice::executor
