// PREDICT by several workers gives the rows, and the errors, of one.
#include "executor/scoring/predict_rows.h"
#include "executor/scoring/drift.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "executor/jobs/begin_job.h"
#include "executor/scoring/dataset_scan.h"
#include "executor/scoring/prediction_columns.h"
#include "executor/scoring/scorer.h"
#include "models/blend/blend.h"
#include "models/model.pb.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "planner/result_columns.h"
#include "planner/stored_plan.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/extended_of.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

constexpr int64_t kRows = 20'000;
constexpr int64_t kRowsPerShard = 1'000;
constexpr size_t kWorkers = 3;

// Records rows. May wait, with its first batch, until another thread has prepared one.
class RecordingWriter final : public catalog::RowWriter {
 public:
  using RowWriter::Write;
  Status Write(const RowBatch& batch) override {
    if (waits_for_another) {
      std::unique_lock lock(mutex_);
      prepared_.wait_for(lock, std::chrono::seconds(60), [this] { return another_; });
    }
    if (on_write) {
      RETURN_IF_ERROR(on_write(static_cast<int64_t>(sink.rows.size())));
    }
    return sink.Rows(batch);
  }
  Prepared Prepare(RowBatch* batch) const override {
    const std::lock_guard lock(mutex_);
    another_ = true;
    prepared_.notify_all();
    return RowWriter::Prepare(batch);
  }
  bool another() const { return another_; }

  RecordingSink sink;
  bool waits_for_another = false;
  std::function<Status(int64_t rows)> on_write;  // before each batch

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable prepared_;
  mutable bool another_ = false;
};

// A source with one connection for readers: further ones are refused, or wait for as long as the
// statement hears no stop.
class BusySource final : public catalog::DataSource {
 public:
  BusySource(catalog::DataSource& source, Status refusal)
      : source_(source), refusal_(std::move(refusal)) {}

  std::string_view dialect() const override { return source_.dialect(); }
  const std::string& url() const override { return source_.url(); }
  std::string secret() const override { return source_.secret(); }
  Result<catalog::ExecuteResult> Execute(std::string_view sql, catalog::RowReceiver* receiver,
                                         std::stop_token stop) override {
    return source_.Execute(sql, receiver, std::move(stop));
  }
  std::string Fold(std::string_view name) const override { return source_.Fold(name); }
  Result<Schema> Describe(std::string_view select) override { return source_.Describe(select); }
  Result<std::vector<catalog::TableName>> SourceTables(std::string_view select) override {
    return source_.SourceTables(select);
  }
  Result<catalog::SelectStatistics> Statistics(std::string_view select, const Schema& schema,
                                               const catalog::StatisticsOptions& options) override {
    return source_.Statistics(select, schema, options);
  }
  Result<catalog::CutEstimate> EstimateCut(std::string_view select,
                                           const catalog::DatasetOptions& options) override {
    return source_.EstimateCut(select, options);
  }
  Result<std::unique_ptr<catalog::Dataset>> OpenDataset(
      std::string_view select, const catalog::DatasetOptions& options) override {
    return source_.OpenDataset(select, options);
  }
  Result<std::optional<catalog::TableName>> ResolveTable(const catalog::TableName& table) override {
    return source_.ResolveTable(table);
  }
  Result<catalog::ResultPlan> PlanResultTable(const catalog::ResultTable& table,
                                              const Schema* columns) override {
    return source_.PlanResultTable(table, columns);
  }
  Result<std::unique_ptr<catalog::TableWriter>> OpenWriter(const catalog::ResultTable& table,
                                                           const Schema& schema) override {
    return source_.OpenWriter(table, schema);
  }
  Status AppendRows(const catalog::TableName& table, const Schema& schema,
                    const RowBatch& batch) override {
    return source_.AppendRows(table, schema, batch);
  }

  void HearStop(std::stop_token stop) override {
    const std::lock_guard lock(mutex_);
    stop_ = std::move(stop);
  }
  Result<std::unique_ptr<catalog::ShardReader>> OpenReader(
      const catalog::DatasetSpec& spec) override {
    std::unique_lock lock(mutex_);
    if (readers_++ == 0) {
      return source_.OpenReader(spec);
    }
    if (!refusal_.ok()) {
      return refusal_;
    }
    std::condition_variable_any never;
    never.wait(lock, stop_, [] { return false; });
    return Cancelled("stopped while it waited for a connection");
  }

 private:
  catalog::DataSource& source_;
  const Status refusal_;  // OK: they wait
  std::mutex mutex_;
  std::stop_token stop_;
  int readers_ = 0;
};

class PredictRowsTest : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    ASSERT_TRUE(
        Run("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 "
            "FROM n WHERE i < 19999) SELECT i, 'text ' || i AS name, i % 97 AS a, "
            "CASE i % 3 WHEN 0 THEN 'red' WHEN 1 THEN 'green' ELSE 'blue' END AS y FROM n"));
    Train("LinearClassifier WITH train.epoch=1, engine.strategy=local LABEL y INTO m");
  }

  void Train(const std::string& model) {
    RecordingSink sink;
    const Status trained = Execute(PlanOf("SELECT a, y FROM t TO TRAIN " + model), *context_, sink);
    ASSERT_TRUE(trained.ok()) << trained.ToString();
  }

  bool Run(const std::string& sql) { return source_->Execute(sql, nullptr, {}).ok(); }

  plan::Plan PlanOf(const std::string& sql) {
    const auto statements = parser::Parse(sql).value();
    const auto extended = ExtendedOf(statements.front());
    context_.emplace(Context{*source_, *catalog_, "tester", sql, stop_.get_token()});
    return planner::MakePlan(*extended, *source_, catalog_->models(), {}).value();
  }

  struct Trained {
    plan::TrainPlan plan;
    catalog::ModelVersion version;
    std::string weights;
  };
  Trained Find(const std::string& model) {
    Trained found;
    found.version = catalog_->models().Find("", model, 1).value();
    found.plan = planner::ReadStoredPlan(found.version.plan).value();
    found.weights = catalog_->models().LoadWeights(found.version).value();
    return found;
  }
  std::unique_ptr<Scorer> ScorerOf(const std::string& model) {
    const Trained trained = Find(model);
    return Scorer::Make(trained.plan.model(), trained.weights).value();
  }

  // Predicts every row with so many workers.
  Status Predict(catalog::RowWriter& writer, size_t workers, Scorer& scorer,
                 catalog::DataSource& source) {
    const plan::Plan planned = PlanOf("SELECT i, name, a FROM t TO PREDICT y USING m");
    const plan::PredictPlan& plan = planned.predict();
    ASSIGN_OR_RETURN(const PredictionColumns predicted,
                     PredictionColumns::Make(plan, Find("m").plan.model().features().label(),
                                             scorer.outputs(), std::nullopt));
    ASSIGN_OR_RETURN(const auto scan,
                     DatasetScan::Open(source, plan.select(),
                                       {.rows_per_shard = kRowsPerShard,
                                        .copies = catalog::CopiedColumns::Purpose::kShow,
                                        .readers = workers}));
    EXPECT_EQ(scan->shards(), kRows / kRowsPerShard);
    const catalog::CopiedColumns copied = {{0, 1, 2}, catalog::CopiedColumns::Purpose::kShow};
    const Schema schema = planner::PredictResult(plan);
    const Trained trained = Find("m");
    Drift drift(trained.plan.model().features(), scorer.transform().ColumnNames(false));
    ASSIGN_OR_RETURN(const auto job, BeginJob(*context_, "predict", "m"));
    const Status status = [&]() -> Status {
      ASSIGN_OR_RETURN(const int64_t rows,
                       PredictRows(
                           *scan, scorer, {copied, predicted, 3, schema, drift}, source,
                           job->stop_token(), [](int64_t /*rows*/) {}, writer, workers));
      EXPECT_EQ(rows, kRows);
      return OkStatus();
    }();
    return job->Finish(status);
  }
  Status Predict(catalog::RowWriter& writer, size_t workers, Scorer& scorer) {
    return Predict(writer, workers, scorer, *source_);
  }
  Status Predict(catalog::RowWriter& writer, size_t workers) {
    return Predict(writer, workers, *ScorerOf("m"));
  }
  void ExpectTheSameRows(Scorer& scorer) {
    RecordingWriter one;
    Status status = Predict(one, 1, scorer);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_FALSE(one.another());
    ASSERT_EQ(one.sink.rows.size(), static_cast<size_t>(kRows));

    RecordingWriter several;
    several.waits_for_another = true;
    status = Predict(several, kWorkers, scorer);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(several.another());  // while the first one delivered
    EXPECT_EQ(several.sink.rows, one.sink.rows);
    EXPECT_EQ(several.sink.rows[12'345][1], Value(std::string("text 12345")));
  }

  std::stop_source stop_;
  std::optional<Context> context_;
};

TEST_F(PredictRowsTest, SeveralWorkersGiveTheRowsOfOneInTheirOrder) {
  ExpectTheSameRows(*ScorerOf("m"));
}

TEST_F(PredictRowsTest, ScorersOfEveryFamilyHaveOthers) {
  Train(
      "xgboost.gbtree WITH train.num_boost_round=3, objective='multi:softprob' LABEL y INTO trees");
  ExpectTheSameRows(*ScorerOf("trees"));

  const Trained network = Find("m"), trees = Find("trees");
  models::ModelSpec blend = network.plan.model();
  blend.set_type(std::string(models::kBlendType));
  for (const Trained* member : {&network, &trees}) {
    auto* const added = blend.add_members();
    *added->mutable_model() = member->plan.model();
    added->set_weight(0.5);
  }
  ExpectTheSameRows(
      *Scorer::Make(blend, models::PackBlend({network.weights, trees.weights})).value());
}

TEST_F(PredictRowsTest, NobodyWaitsForAWorkerThatHasNoConnection) {
  for (const Status& refusal :
       {Status(), Status(Code::kResourceExhausted, "too many clients").SqlState("53300")}) {
    BusySource busy(*source_, refusal);
    RecordingWriter writer;
    const Status status = Predict(writer, kWorkers, *ScorerOf("m"), busy);
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(writer.sink.rows.size(), static_cast<size_t>(kRows));
  }
}

TEST_F(PredictRowsTest, TheFirstErrorInTheDatasetsOrderEndsIt) {
  // Three shards with a cell that is no number; a later worker meets its own first.
  ASSERT_TRUE(Run("UPDATE t SET a = 'not a number ' || i WHERE i IN (4500, 5500, 6500)"));
  RecordingWriter one;
  const Status expected = Predict(one, 1);
  ASSERT_FALSE(expected.ok());
  for (int round = 0; round < 5; ++round) {
    RecordingWriter several;
    several.waits_for_another = true;
    EXPECT_EQ(Predict(several, kWorkers).ToString(), expected.ToString());
    EXPECT_EQ(several.sink.rows, one.sink.rows);  // the shards before
    EXPECT_EQ(several.sink.rows.size(), 4'000U);
  }
}

TEST_F(PredictRowsTest, AnErrorOfTheWriterEndsAllWorkers) {
  RecordingWriter writer;
  writer.on_write = [](int64_t rows) {
    return rows < 7'000 ? OkStatus() : InvalidArgument("the table is full");
  };
  EXPECT_EQ(Predict(writer, kWorkers).message(), "the table is full");
  EXPECT_EQ(writer.sink.rows.size(), 7'000U);
}

TEST_F(PredictRowsTest, AStoppedJobEndsAllWorkers) {
  RecordingWriter writer;
  writer.on_write = [this](int64_t rows) {
    if (rows == 3'000) {
      stop_.request_stop();
    }
    return OkStatus();
  };
  EXPECT_EQ(Predict(writer, kWorkers).code(), Code::kCancelled);
  EXPECT_LT(writer.sink.rows.size(), static_cast<size_t>(kRows));
}

}  // namespace
}  // namespace sluice::executor
