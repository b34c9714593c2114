// A job's end, where another one, or this one, has written it before.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/job_record.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class JobEndTest : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    Write(
        "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE"
        " i < 2000) SELECT i % 97 AS a, i % 2 AS y FROM n");
  }
  void Write(const std::string& sql) {
    const Status done = source_->Execute(sql, nullptr, {}).status();
    ASSERT_TRUE(done.ok()) << done.ToString();
  }
  catalog::JobStore& jobs() { return catalog_->jobs(); }
  std::unique_ptr<JobRecord> Begin() {
    catalog::Job job;
    job.kind = "train";
    return JobRecord::Start(*catalog_, std::move(job), {}).value();
  }
  // As another thread or process does.
  void End(const JobRecord& job, catalog::JobState state, const std::string& answer) {
    catalog::Job row = jobs().Find(job.id()).value();
    row.state = state;
    row.answer = answer;
    const Status ended = jobs().End(row);
    ASSERT_TRUE(ended.ok()) << ended.ToString();
  }
  Status Train(const std::string& attributes, RecordingSink& sink,
               const std::function<void(int64_t job)>& on_job = {}) {
    const std::string sql = "SELECT a, y FROM t TO TRAIN " + attributes + " LABEL y INTO m";
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)), *source_,
                                       catalog_->models(), {}));
    Context context{*source_, *catalog_, "tester", sql, {}};
    context.on_job = on_job;
    return Execute(plan, context, sink);
  }
  int64_t Versions() {
    const auto versions = catalog_->models().Versions("", "m");
    return versions.ok() ? static_cast<int64_t>(versions->size()) : 0;
  }

  static constexpr const char* kTrainings[] = {
      "DNNClassifier WITH model.hidden_units=[4], train.epoch=1, engine.strategy=local",
      "xgboost.gbtree WITH train.num_boost_round=2, objective='binary:logistic'",
      ("DNNClassifier WITH model.hidden_units=[4], train.epoch=2, engine.strategy=local, "
       "tune.optimizer.learning_rate=[0.01, 0.1], tune.trials=2, tune.search=random")};
};

TEST_F(JobEndTest, WhatHasSucceededInTheCatalogIsNotEndedAgain) {
  const auto job = Begin();
  const catalog::Job success = job->Success("rows");
  EXPECT_EQ(success.state, catalog::JobState::kSucceeded);
  ASSERT_TRUE(jobs().End(success).ok());
  job->HasSucceeded("rows");
  job->Event("last", "word");
  EXPECT_TRUE(job->Finish(Cancelled("too late")).ok());
  EXPECT_EQ(jobs().Find(job->id())->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(jobs().Answer(job->id()).value(), "rows");
  EXPECT_THAT(jobs().Events(job->id()).value(), SizeIs(1));
}

// The answer to a COMMIT was lost, or the process that committed was.
TEST_F(JobEndTest, AnEndThatIsOpenIsTheOneInTheCatalog) {
  for (const Status& open :
       {Cancelled("stopped"), catalog::JobIsOver(1, {}), Unavailable("lost").SqlState("08006")}) {
    const auto job = Begin();
    End(*job, catalog::JobState::kSucceeded, "rows");
    const Status finished = job->Finish(open);
    EXPECT_TRUE(finished.ok()) << finished.ToString();
    EXPECT_EQ(job->answer(), "rows");
    EXPECT_EQ(jobs().Find(job->id())->state, catalog::JobState::kSucceeded);
  }
}

TEST_F(JobEndTest, WhoeverFailedItSaysWhy) {
  const auto job = Begin();
  End(*job, catalog::JobState::kFailed, AnswerBytes(Status(Code::kAborted, "x").SqlState("40001")));
  const Status finished = job->Finish(catalog::JobIsOver(job->id(), catalog::JobState::kFailed));
  EXPECT_EQ(finished.sqlstate(), "40001") << finished.ToString();
}

TEST_F(JobEndTest, AnErrorThatIsNotOpenStays) {
  const auto job = Begin();
  End(*job, catalog::JobState::kSucceeded, "rows");
  EXPECT_EQ(job->Finish(Internal("cannot be read back")).code(), Code::kInternal);
  EXPECT_EQ(jobs().Find(job->id())->state, catalog::JobState::kSucceeded);
}

TEST_F(JobEndTest, WhoHasLostAJobDoesNotEndIt) {
  const auto job = Begin();
  const catalog::JobRunner here = jobs().Running().value().at(0).runner;
  ASSERT_TRUE(jobs().TakeOver(job->id(), here, {"there", 1, 2, WallMicros()}).value());
  const Status finished = job->Finish(Internal("its processes are gone"));
  EXPECT_EQ(finished.code(), Code::kAborted) << finished.ToString();
  EXPECT_EQ(jobs().Find(job->id())->state, catalog::JobState::kRunning);
}

TEST_F(JobEndTest, ATrainingEndsWithItsModel) {
  for (const char* const training : kTrainings) {
    RecordingSink sink;
    const Status trained = Train(training, sink);
    ASSERT_TRUE(trained.ok()) << trained.ToString();
    EXPECT_EQ(sink.tag, "TRAIN");
    const catalog::Job job = jobs().List(1).value().at(0);
    EXPECT_EQ(job.state, catalog::JobState::kSucceeded);
    EXPECT_GT(job.rows_trained, 0);
    RecordingSink again;
    ASSERT_TRUE(SendAnswer(jobs().Answer(job.id).value(), again).ok());
    EXPECT_EQ(again.rows, sink.rows);
    EXPECT_EQ(std::get<int64_t>(again.Cell("version")), Versions());
  }
}

// Neither without the other, whichever of them cannot be written.
TEST_F(JobEndTest, ATrainingThatCannotBeStoredLeavesNeither) {
  ASSERT_TRUE(catalog_->MakeTables().ok());
  for (const std::string trigger :
       {"BEFORE INSERT ON sluice_model_chunks",
        "BEFORE UPDATE ON sluice_jobs WHEN NEW.state = 'SUCCEEDED'",
        "BEFORE INSERT ON sluice_job_answers WHEN EXISTS (SELECT 1 FROM sluice_jobs WHERE id ="
        " NEW.job_id AND state = 'SUCCEEDED')"}) {
    Write("CREATE TRIGGER no_room " + trigger + " BEGIN SELECT RAISE(ABORT, 'no room'); END");
    for (const char* const training : kTrainings) {
      RecordingSink sink;
      EXPECT_THAT(Train(training, sink).ToString(), HasSubstr("no room"));
      const catalog::Job job = jobs().List(1).value().at(0);
      EXPECT_EQ(job.state, catalog::JobState::kFailed) << trigger << ": " << training;
      EXPECT_THAT(job.error, HasSubstr("no room"));
      EXPECT_EQ(Versions(), 0) << trigger << ": " << training;
    }
    Write("DROP TRIGGER no_room");
  }
}

TEST_F(JobEndTest, ATrainingWhoseJobIsGivenUpStoresNoModel) {
  const Status why = Unavailable("silent for too long");
  for (const char* const training : kTrainings) {
    RecordingSink sink;
    const Status trained = Train(training, sink, [&](int64_t job) {
      EXPECT_TRUE(jobs()
                      .Abandon(job, WallMicros(), catalog::JobState::kFailed, why.ToString(),
                               AnswerBytes(why))
                      .ok());
    });
    EXPECT_EQ(trained.message(), "silent for too long") << training;
    EXPECT_EQ(Versions(), 0) << training;
    EXPECT_EQ(jobs().List(1).value().at(0).state, catalog::JobState::kFailed);
  }
}

}  // namespace
}  // namespace sluice::executor
