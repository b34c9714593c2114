// Trainings that try several models, from SQL text to the stored model.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "planner/stored_plan.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

class ContestTest : public SqliteTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SqliteTest::SetUp());
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    std::string sql = "CREATE TABLE points (a REAL, b REAL, y TEXT)";
    ASSERT_TRUE(source_->Execute(sql, nullptr, {}).ok());
    sql = "INSERT INTO points VALUES ";
    for (int i = 0; i < 120; ++i) {
      const double a = normal(random);
      const double b = normal(random);
      const bool yes = a + 0.5 * b + (b > 0.5 ? 1.0 : 0.0) + 0.7 * normal(random) > 0.3;
      sql += (i == 0 ? "(" : ",(") + std::to_string(a) + "," + std::to_string(b) + ",'" +
             (yes ? "yes" : "no") + "')";
    }
    ASSERT_TRUE(source_->Execute(sql, nullptr, {}).ok());
  }
  Status Run(const std::string& sql, ResultSink& sink) {
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)), *source_,
                                       catalog_->models(), {}));
    Context context{*source_, *catalog_, "tester", sql, stop_.get_token()};
    return Execute(plan, context, sink);
  }

  // What the contest of kShort leaves beside its model: what each candidate was worth.
  void ExpectWhatEachWasWorth(const catalog::ModelVersion& version) {
    const auto plan = planner::ReadStoredPlan(version.plan);
    ASSERT_TRUE(plan.ok());
    ASSERT_EQ(plan->contest().candidates_size(), 9);
    double least = std::numeric_limits<double>::infinity();
    double weights = 0;
    for (const plan::Candidate& candidate : plan->contest().candidates()) {
      EXPECT_TRUE(candidate.has_value()) << candidate.name() << ": " << candidate.outcome();
      EXPECT_FALSE(candidate.has_plan());
      least = std::min(least, candidate.value());
      weights += candidate.weight();
    }
    EXPECT_NEAR(weights, 1, 1e-9);
    EXPECT_EQ(plan->contest().validation_rows(), 120);
    for (const auto& [name, value] : version.metrics) {
      if (name == "log_loss") {
        EXPECT_LE(value,
                  least + 1e-9);  // of the model: the best one's, or a blend's, which is lower
      }
    }
    const auto events = catalog_->jobs().Events(version.job);
    ASSERT_TRUE(events.ok());
    EXPECT_EQ(std::count_if(events->begin(), events->end(),
                            [](const auto& event) { return event.kind == "candidate"; }),
              9);
    // At the end also a table of them, the best first.
    std::vector<std::string> table;
    for (const catalog::JobEvent& event : *events) {
      if (event.kind == "result") {
        table.push_back(event.detail);
      }
    }
    ASSERT_EQ(table.size(), 9U);
    EXPECT_EQ(table.front().find("1. "), 0U) << table.front();
    EXPECT_NE(table.front().find(fmt::format("log_loss {:.6g}", least)), std::string::npos)
        << table.front();
    EXPECT_EQ(table.back().find("9. "), 0U) << table.back();
  }

  void StopAtTheFirstCandidate(RecordingSink* sink) {
    sink->on_notice = [this](const std::string& message) {
      if (message.find(": log_loss") != std::string::npos) {
        stop_.request_stop();
      }
    };
  }

  std::stop_source stop_;
};

constexpr char kShort[] = "SELECT a, b, y FROM points LABEL y WITH auto.seconds=600 INTO m";
constexpr char kSearch[] =
    "SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH tune.eta=[0.01, 0.5], tune.trials=40, "
    "tune.search=random LABEL y INTO m";

TEST_F(ContestTest, TheSameStatementMakesTheSameBytesInOneJobEachAndKeepsWhatEachWasWorth) {
  for (int i = 0; i < 2; ++i) {
    RecordingSink sink;
    const Status status = Run(kShort, sink);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  const auto versions = catalog_->models().Versions("", "m");
  ASSERT_TRUE(versions.ok());
  ASSERT_EQ(versions->size(), 2U);
  EXPECT_EQ((*versions)[0].weights_sha256, (*versions)[1].weights_sha256);
  EXPECT_EQ((*versions)[0].metrics, (*versions)[1].metrics);
  EXPECT_EQ(catalog_->jobs().Count().value(), 2);
  const auto newest = catalog_->models().Find("", "m", std::nullopt);
  ASSERT_TRUE(newest.ok());
  ExpectWhatEachWasWorth(*newest);
}

TEST_F(ContestTest, OfACandidateIsToldOnce) {
  RecordingSink sink;
  ASSERT_TRUE(Run("SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH tune.eta=[0.05, 0.5], "
                  "tune.trials=6, tune.search='halving', tune.seconds=600 LABEL y INTO m",
                  sink)
                  .ok());
  EXPECT_EQ(std::count_if(sink.notices.begin(), sink.notices.end(),
                          [](const std::string& notice) {
                            return notice.find(": log_loss") != std::string::npos &&
                                   notice.find("was chosen") == std::string::npos;
                          }),
            6);
}

TEST_F(ContestTest, ThatIsStoppedLeavesNothing) {
  RecordingSink sink;
  StopAtTheFirstCandidate(&sink);
  const Status status = Run(kShort, sink);
  EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  EXPECT_FALSE(catalog_->models().Find("", "m", std::nullopt).ok());
}

TEST_F(ContestTest, ASearchThatIsStoppedKeepsTheBestSoFar) {
  RecordingSink sink;
  StopAtTheFirstCandidate(&sink);
  const Status status = Run(kSearch, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto version = catalog_->models().Find("", "m", std::nullopt);
  ASSERT_TRUE(version.ok());
  const auto plan = planner::ReadStoredPlan(version->plan);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->contest().candidates_size(), 40);
  EXPECT_FALSE(plan->contest().candidates(39).has_value());
  EXPECT_EQ(catalog_->jobs().Find(version->job)->state, catalog::JobState::kSucceeded);
}

TEST_F(ContestTest, TimeThatIsMuchTooShortMakesAModelAllTheSame) {
  RecordingSink sink;
  const Status status =
      Run("SELECT a, b, y FROM points LABEL y WITH auto.seconds=0.001 INTO m", sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(catalog_->models().Find("", "m", std::nullopt).ok());
}

}  // namespace
}  // namespace sluice::executor
