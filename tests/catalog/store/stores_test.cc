#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "tests/catalog/both_databases.h"

namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class StoresTest : public BothDatabases {
 protected:
  static ModelVersion Model(const std::string& name) {
    ModelVersion model;
    model.name = name;
    model.type = "DNNClassifier";
    model.statement = "SELECT 'it''s' ...";
    model.plan = std::string("\x00\x01plan\xff", 7);
    model.metrics = {{"auc", 0.91234567890123456}, {"accuracy", 1}, {"loss", std::nan("")}};
    model.rows = 1234;
    model.lineage = R"({"seed": 7})";
    return model;
  }

  bool HasTables() {
    return !Select(postgres() ? "SELECT 1 FROM pg_namespace WHERE nspname = 'sluice'"
                              : "SELECT 1 FROM sqlite_schema WHERE name LIKE 'sluice%'")
                .empty();
  }
  std::string Table(const std::string& name) { return (postgres() ? "sluice." : "sluice_") + name; }
};

TEST_P(StoresTest, ReadingCreatesNothing) {
  EXPECT_THAT(catalog().models().List().value(), IsEmpty());
  const auto model = catalog().models().Find("", "m", std::nullopt);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().sqlstate(), "42704");
  EXPECT_EQ(model.status().message(), "there is no model 'm'");
  EXPECT_EQ(catalog().models().Drop("", "m", std::nullopt).code(), Code::kNotFound);
  EXPECT_EQ(catalog().models().Versions("", "m").status().code(), Code::kNotFound);
  EXPECT_THAT(catalog().jobs().List().value(), IsEmpty());
  EXPECT_EQ(catalog().jobs().Find(1).status().code(), Code::kNotFound);
  EXPECT_EQ(catalog().jobs().RequestCancel(1).code(), Code::kNotFound);
  EXPECT_FALSE(HasTables());
}

TEST_P(StoresTest, AModelComesBackAsItWasStored) {
  std::string weights(3'500'000, '\0');
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<char>(i * 31 + i / 1000);
  }
  const auto put = catalog().models().Put(Model("m"), weights, true);
  ASSERT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_EQ(put->version, 1);
  EXPECT_TRUE(put->live);
  EXPECT_GT(put->created_micros, 0);
  EXPECT_THAT(put->weights_sha256, SizeIs(64));

  const auto found = catalog().models().Find("", "m", std::nullopt);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(found->plan, Model("m").plan);
  EXPECT_EQ(found->statement, Model("m").statement);
  EXPECT_EQ(found->lineage, Model("m").lineage);
  EXPECT_EQ(found->rows, 1234);
  EXPECT_EQ(found->weights_bytes, 3'500'000);
  ASSERT_THAT(found->metrics, SizeIs(3));
  EXPECT_EQ(found->metrics[0], Model("m").metrics[0]);
  EXPECT_EQ(found->metrics[1], Model("m").metrics[1]);
  EXPECT_TRUE(std::isnan(found->metrics[2].second));
  const auto loaded = catalog().models().LoadWeights(*found);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(*loaded, weights);
  EXPECT_EQ(Select("SELECT count(*) FROM " + Table("model_chunks"))[0][0], "4");
}

TEST_P(StoresTest, AModelWithoutWeightsIsFine) {
  ASSERT_TRUE(catalog().models().Put(Model("m"), "", false).ok());
  const auto found = catalog().models().Find("", "m", 1);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(catalog().models().LoadWeights(*found).value(), "");
}

TEST_P(StoresTest, DamagedWeightsAreNoticed) {
  ASSERT_TRUE(catalog().models().Put(Model("m"), "some weights", true).ok());
  const auto model = catalog().models().Find("", "m", std::nullopt);
  ASSERT_TRUE(model.ok());
  Run("UPDATE " + Table("model_chunks") +
      " SET bytes = " + (postgres() ? "'some weightz'::bytea" : "x'736f6d65'"));
  const auto damaged = catalog().models().LoadWeights(*model);
  ASSERT_FALSE(damaged.ok());
  EXPECT_THAT(damaged.status().message(), HasSubstr("model 'm:1' are damaged"));
  Run("DELETE FROM " + Table("model_chunks"));
  EXPECT_FALSE(catalog().models().LoadWeights(*model).ok());
}

// A statement that has found a model continues with it even if the model is renamed.
TEST_P(StoresTest, WeightsAreFoundAfterTheModelWasRenamed) {
  ModelStore& models = catalog().models();
  ASSERT_TRUE(models.Put(Model("m"), "first", true).ok());
  ASSERT_TRUE(models.Put(Model("m"), "second", false).ok());
  const auto first = models.Find("", "m", 1);
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(models.Put(Model("taken"), "others", true).ok());
  EXPECT_EQ(models.Rename("", "m", "", "taken").sqlstate(), "42710");
  EXPECT_EQ(models.Rename("", "gone", "", "n").sqlstate(), "42704");
  const Status renamed = models.Rename("", "m", "s", "n");
  ASSERT_TRUE(renamed.ok()) << renamed.ToString();
  EXPECT_EQ(models.Find("", "m", std::nullopt).status().sqlstate(), "42704");
  EXPECT_EQ(models.Find("s", "n", std::nullopt)->version, 2);
  EXPECT_EQ(models.LoadWeights(*first).value(), "first");
  // The next version gets the next number.
  ModelVersion next = Model("n");
  next.schema = "s";
  EXPECT_EQ(models.Put(next, "third", false)->version, 3);
  // Another model with the old name is a different model.
  ASSERT_TRUE(models.Put(Model("m"), "not the first", true).ok());
  EXPECT_EQ(models.LoadWeights(*first).value(), "first");
  ASSERT_TRUE(models.Drop("s", "n", 1).ok());
  ASSERT_TRUE(models.Drop("", "m", std::nullopt).ok());
  const auto dropped = models.LoadWeights(*first);
  ASSERT_FALSE(dropped.ok());
  EXPECT_EQ(dropped.status().sqlstate(), "40001") << dropped.status().ToString();
}

TEST_P(StoresTest, WhatIsStoredWhileTheModelGoesAwayIsANewModel) {
  if (!postgres()) {
    GTEST_SKIP() << "one writer at a time";
  }
  ASSERT_TRUE(catalog().models().Put(Model("m"), "old", true).ok());
  Run("BEGIN");
  Select("SELECT 1 FROM " + Table("models") + " FOR UPDATE");
  Result<ModelVersion> put = Internal("not stored");
  std::thread training([&] { put = catalog().models().Put(Model("m"), "new", false); });
  while (Select("SELECT 1 FROM pg_locks WHERE NOT granted").empty()) {
    std::this_thread::yield();  // until it waits for us
  }
  for (const char* table : {"model_chunks", "model_versions", "models"}) {
    Run("DELETE FROM " + Table(table));
  }
  Run("COMMIT");
  training.join();
  ASSERT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_EQ(put->version, 1);
  EXPECT_EQ(catalog().models().LoadWeights(*put).value(), "new");
}

// The row is not trusted: its numbers are checked against the chunks before anything is allocated.
TEST_P(StoresTest, NumbersOfAModelRowAreNotTrusted) {
  ASSERT_TRUE(catalog().models().Put(Model("m"), std::string(3 << 20, 'w'), true).ok());
  const auto load = [this] {
    const auto model = catalog().models().Find("", "m", std::nullopt);
    EXPECT_TRUE(model.ok());
    return catalog().models().LoadWeights(*model).status();
  };
  ASSERT_TRUE(load().ok());
  for (const char* bytes : {"-1", "9223372036854775807", "-9223372036854775808",
                            "4611686018427387904", "3145727", "0"}) {
    Run("UPDATE " + Table("model_versions") + " SET weights_bytes = " + bytes);
    const Status status = load();
    EXPECT_EQ(status.sqlstate(), "XX001") << bytes;
    EXPECT_EQ(status.message(), "the stored weights of model 'm:1' are damaged");
  }
  if (!postgres()) {  // SQLite accepts anything in any column
    for (const char* bytes : {"1e300", "-9e999", "'text'", "x'00'"}) {
      Run("UPDATE " + Table("model_versions") + " SET weights_bytes = " + bytes);
      EXPECT_EQ(load().sqlstate(), "XX001") << bytes;
    }
  }
  Run("UPDATE " + Table("model_versions") + " SET weights_bytes = 3145728");
  ASSERT_TRUE(load().ok());
  Run("UPDATE " + Table("model_chunks") + " SET position = 9223372036854775807 WHERE position = 2");
  EXPECT_EQ(load().sqlstate(), "XX001");
  Run("UPDATE " + Table("model_chunks") + " SET position = -1 WHERE position > 2");
  EXPECT_EQ(load().sqlstate(), "XX001");
}

TEST_P(StoresTest, MetricsOfAModelRowAreNotTrusted) {
  ASSERT_TRUE(catalog().models().Put(Model("m"), "w", true).ok());
  std::vector<std::string> others = {
      R"({"a":{}})", "[1]", "7", "null",
      R"({"a":)" + std::string(2000, '[') + std::string(2000, ']') + "}"};
  if (!postgres()) {  // PostgreSQL's json type refuses these
    others.insert(others.end(),
                  {std::string(1'000'000, '['), R"({"a":)" + std::string(900'000, '['),
                   std::string(200'000, '{'), "{", ""});
  }
  for (const std::string& metrics : others) {
    Run("UPDATE " + Table("model_versions") + " SET metrics = '" + metrics + "'");
    const auto models = catalog().models().List();
    ASSERT_TRUE(models.ok()) << models.status().ToString();
    EXPECT_THAT(models->at(0).metrics, IsEmpty()) << metrics.substr(0, 20);
  }
  Run("UPDATE " + Table("model_versions") + R"( SET metrics = '{"a": null, "b": -3, "c": true}')");
  const auto models = catalog().models().List();
  ASSERT_THAT(models->at(0).metrics, SizeIs(3));
  EXPECT_EQ(models->at(0).metrics[1], (std::pair<std::string, double>("b", -3)));
  EXPECT_TRUE(std::isnan(models->at(0).metrics[2].second));
}

TEST_P(StoresTest, VersionsPromoteRollbackDrop) {
  ModelStore& models = catalog().models();
  for (int i = 1; i <= 3; ++i) {
    const auto put = models.Put(Model("m"), "w" + std::to_string(i), false);
    ASSERT_TRUE(put.ok());
    EXPECT_EQ(put->version, i);
  }
  const auto live = [&] { return models.Find("", "m", std::nullopt).value().version; };
  EXPECT_EQ(live(), 3);
  EXPECT_TRUE(models.Promote("", "m", 1).ok());
  EXPECT_EQ(live(), 1);
  const Status before = models.Rollback("", "m");
  EXPECT_EQ(before.code(), Code::kFailedPrecondition);
  EXPECT_TRUE(models.Promote("", "m", 3).ok());
  EXPECT_TRUE(models.Rollback("", "m").ok());
  EXPECT_EQ(live(), 2);
  EXPECT_EQ(models.LoadWeights(models.Find("", "m", std::nullopt).value()).value(), "w2");

  const Status missing = models.Promote("", "m", 9);
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.diagnostics()[0].hint, "its versions are 1, 2, 3");

  EXPECT_TRUE(models.Drop("", "m", 2).ok());
  EXPECT_EQ(live(), 3);  // the newest takes its place
  EXPECT_THAT(models.Versions("", "m").value(), SizeIs(2));
  EXPECT_TRUE(models.Drop("", "m", 3).ok());
  EXPECT_EQ(models.Put(Model("m"), "w4", false).value().version, 4);  // numbers are not used twice
  EXPECT_TRUE(models.Drop("", "m", std::nullopt).ok());
  EXPECT_EQ(models.Find("", "m", std::nullopt).status().code(), Code::kNotFound);
  EXPECT_EQ(Select("SELECT count(*) FROM " + Table("model_chunks"))[0][0], "0");
  EXPECT_EQ(models.Put(Model("m"), "w", true).value().version, 1);
}

TEST_P(StoresTest, AnExistingModelCanBeRefused) {
  ASSERT_TRUE(catalog().models().Put(Model("m"), "w", true).ok());
  const auto again = catalog().models().Put(Model("m"), "w", true);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().sqlstate(), "42710");
  EXPECT_THAT(catalog().models().Versions("", "m").value(), SizeIs(1));
}

TEST_P(StoresTest, TheNearestModelIsNamed) {
  ASSERT_TRUE(catalog().models().Put(Model("census_dnn"), "w", true).ok());
  ModelVersion other = Model("m");
  other.schema = "lab";
  ASSERT_TRUE(catalog().models().Put(other, "w", true).ok());
  const auto near = catalog().models().Find("", "census_dn", std::nullopt);
  ASSERT_FALSE(near.ok());
  EXPECT_EQ(near.status().diagnostics()[0].hint, "did you mean 'census_dnn'?");
  EXPECT_TRUE(catalog().models().Find("lab", "m", std::nullopt).ok());
  EXPECT_FALSE(catalog().models().Find("", "m", std::nullopt).ok());
  const auto list = catalog().models().List().value();
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(list[0].name, "census_dnn");
  EXPECT_EQ(list[0].plan, "");
}

TEST_P(StoresTest, AFailedPutLeavesNothing) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite takes any text as JSON";
  }
  ModelVersion model = Model("m");
  model.lineage = "not json";
  EXPECT_FALSE(catalog().models().Put(model, "w", true).ok());
  EXPECT_FALSE(catalog().models().Find("", "m", std::nullopt).ok());
  EXPECT_EQ(Select("SELECT count(*) FROM sluice.models")[0][0], "0");
}

TEST_P(StoresTest, RowsOfAnEpochStandInTheLineage) {
  ModelVersion model = Model("m");
  model.rows = 1500;
  model.lineage = R"({"epochs": 5, "rows_per_epoch": 300})";
  ASSERT_TRUE(catalog().models().Put(model, "w", true).ok());
  EXPECT_EQ(catalog().models().Find("", "m", std::nullopt)->rows_per_epoch, 300);
  EXPECT_EQ(catalog().models().List()->front().rows_per_epoch, 300);
  model.lineage = "{}";
  ASSERT_TRUE(catalog().models().Put(model, "w", false).ok());
  EXPECT_EQ(catalog().models().Find("", "m", std::nullopt)->rows_per_epoch, 1500);
}

TEST_P(StoresTest, ConcurrentPutsMakeVersions) {
  std::vector<std::jthread> threads;
  std::atomic<int> stored{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto other = OpenCatalog(url());
      ASSERT_TRUE(other.ok());
      for (int k = 0; k < 3; ++k) {
        const auto put = (*other)->models().Put(Model("m"), "w", false);
        EXPECT_TRUE(put.ok()) << put.status().ToString();
        stored += put.ok() ? 1 : 0;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(stored, 12);
  const auto versions = catalog().models().Versions("", "m").value();
  ASSERT_THAT(versions, SizeIs(12));
  int live = 0;
  for (size_t i = 0; i < versions.size(); ++i) {
    EXPECT_EQ(versions[i].version, static_cast<int64_t>(i) + 1);
    live += versions[i].live ? 1 : 0;
  }
  EXPECT_EQ(live, 1);
}

TEST_P(StoresTest, AJournalBelongsToTheNewestMasterAndGoesWithTheJob) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.id = jobs.Create(job).value();
  EXPECT_THAT(jobs.Journal(job.id).value(), IsEmpty());
  ASSERT_EQ(jobs.BeginTerm(job.id).value(), 1);
  const std::string bytes("a\0b\xff", 4);
  std::optional<int64_t> first, second;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"first", bytes}, false, &first).ok());
  ASSERT_EQ(jobs.BeginTerm(job.id).value(), 2);
  EXPECT_EQ(jobs.AppendJournal(job.id, 1, {"too late"}, false, &first).code(), Code::kAborted);
  ASSERT_TRUE(jobs.AppendJournal(job.id, 2, {"third"}, false, &second).ok());
  EXPECT_EQ(jobs.Journal(job.id).value(), (std::vector<std::string>{"first", bytes, "third"}));
  ASSERT_EQ(jobs.BeginTerm(job.id + 1).value(), 1) << "each job has its own";
  job.state = JobState::kSucceeded;
  ASSERT_TRUE(jobs.Update(job).ok());
  EXPECT_THAT(jobs.Journal(job.id).value(), IsEmpty());
}

TEST_P(StoresTest, RecordsOfAJobGoWithItsEnd) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.id = jobs.Create(job).value();
  EXPECT_THAT(jobs.Records(job.id, "").value(), IsEmpty());
  const std::string bytes("a\0b\xff", 4);
  ASSERT_TRUE(jobs.KeepRecord(job.id, "plan", "old").ok());
  ASSERT_TRUE(jobs.KeepRecord(job.id, "plan", bytes).ok());
  ASSERT_TRUE(jobs.KeepRecord(job.id, "snapshot/1", "one").ok());
  ASSERT_TRUE(jobs.KeepRecord(job.id + 1, "plan", "another's").ok());
  using Records = std::map<std::string, std::string>;
  EXPECT_EQ(jobs.Records(job.id, "").value(), (Records{{"plan", bytes}, {"snapshot/1", "one"}}));
  EXPECT_EQ(jobs.Records(job.id, "snapshot/").value(), (Records{{"snapshot/1", "one"}}));
  job.state = JobState::kSucceeded;
  ASSERT_TRUE(jobs.Update(job).ok());
  EXPECT_THAT(jobs.Records(job.id, "").value(), IsEmpty());
}

// The connection was lost at COMMIT: the outcome is unknown, so the master writes it again.
TEST_P(StoresTest, AnAppendThatIsRepeatedIsThereOnce) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.id = jobs.Create(job).value();
  ASSERT_EQ(jobs.BeginTerm(job.id).value(), 1);
  std::optional<int64_t> last;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"first"}, false, &last).ok());
  const std::optional<int64_t> known = last;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"second", "third"}, false, &last).ok());
  last = known;  // as if the answer never came
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"second", "third"}, false, &last).ok());
  EXPECT_EQ(jobs.Journal(job.id).value(), (std::vector<std::string>{"first", "second", "third"}));
  const std::optional<int64_t> before = last;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"all"}, true, &last).ok());
  last = before;
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"all"}, true, &last).ok());
  ASSERT_TRUE(jobs.AppendJournal(job.id, 1, {"more"}, false, &last).ok());
  EXPECT_EQ(jobs.Journal(job.id).value(), (std::vector<std::string>{"all", "more"}));
}

TEST_P(StoresTest, JobsAreRows) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.statement = "SELECT 1";
  job.model = "m";
  job.user = "somebody";
  job.started_micros = 1'700'000'000'000'000;
  const auto id = jobs.Create(job);
  ASSERT_TRUE(id.ok()) << id.status().ToString();
  job.id = *id;
  const auto second = jobs.Create(job);
  ASSERT_TRUE(second.ok());
  EXPECT_GT(*second, *id);

  EXPECT_FALSE(jobs.CancelRequested(*id).value());
  ASSERT_TRUE(jobs.RequestCancel(*id).ok());
  EXPECT_TRUE(jobs.CancelRequested(*id).value());
  EXPECT_FALSE(jobs.CancelRequested(*second).value());

  job.state = JobState::kCancelled;
  job.rows_trained = 17;
  job.error = "cancelled";
  job.finished_micros = 1'700'000'001'000'000;
  ASSERT_TRUE(jobs.Update(job).ok());
  const auto found = jobs.Find(*id);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->state, JobState::kCancelled);
  EXPECT_EQ(found->rows_trained, 17);
  EXPECT_EQ(found->finished_micros, 1'700'000'001'000'000);
  EXPECT_TRUE(jobs.CancelRequested(*id).value());  // an update does not undo the request
  EXPECT_EQ(jobs.RequestCancel(*id).code(), Code::kFailedPrecondition);

  const auto list = jobs.List().value();
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(list[0].id, *second);
  EXPECT_THAT(jobs.List(1).value(), SizeIs(1));
  EXPECT_EQ(jobs.Count().value(), 2);

  ASSERT_TRUE(jobs.WriteRows(*second, 30, 20).ok());
  EXPECT_EQ(jobs.Find(*second)->rows_read, 30);
  EXPECT_EQ(jobs.Find(*second)->rows_trained, 20);
  ASSERT_TRUE(jobs.WriteRows(*id, 1, 1).ok());  // it has ended
  EXPECT_EQ(jobs.Find(*id)->rows_trained, 17);
  EXPECT_THAT(Select("SELECT started FROM " + Table("jobs"))[0][0],
              HasSubstr("2023-11-14 22:13:20"));

  job.id = 999;
  EXPECT_EQ(jobs.Update(job).code(), Code::kNotFound);
}

TEST_P(StoresTest, ASuspendedJobHasNotEnded) {
  JobStore& jobs = catalog().jobs();
  Job job;
  job.kind = "train";
  job.runner = {"pods/a/b", 1, 0, 5};
  const int64_t id = *jobs.Create(job);
  ASSERT_TRUE(jobs.KeepRecord(id, "statement", "s").ok());
  ASSERT_TRUE(jobs.SetSuspended(id, true).ok());
  EXPECT_EQ(jobs.Find(id)->state, JobState::kSuspended);
  EXPECT_EQ(jobs.Running()->size(), 1U);
  EXPECT_EQ(jobs.Records(id, "")->size(), 1U);
  EXPECT_TRUE(jobs.RequestCancel(id).ok());
  ASSERT_TRUE(jobs.SetSuspended(id, false).ok());
  EXPECT_EQ(jobs.Find(id)->state, JobState::kRunning);
  ASSERT_TRUE(jobs.SetSuspended(id, true).ok());
  ASSERT_TRUE(jobs.Abandon(id, 10, JobState::kCancelled, "away", "").ok());
  EXPECT_EQ(jobs.Find(id)->state, JobState::kCancelled);
  EXPECT_EQ(jobs.SetSuspended(id, false).code(), Code::kAborted);
}

TEST_P(StoresTest, ARunningJobHasARunnerAndCanBeAbandoned) {
  JobStore& jobs = catalog().jobs();
  EXPECT_THAT(jobs.Running().value(), IsEmpty());
  Job job;
  job.kind = "train";
  job.statement = "SELECT 1";
  job.runner = {"here", 42, 4711, 1'700'000'000'000'000};
  const int64_t id = jobs.Create(job).value();
  const int64_t other = jobs.Create(job).value();
  const JobRunner runner{"here", 42, 4711, 1'700'000'009'000'000};
  ASSERT_TRUE(jobs.Seen(id, runner).value());
  const std::vector<Job> running = jobs.Running().value();
  ASSERT_THAT(running, SizeIs(2));
  const Job& one = running[0].id == id ? running[0] : running[1];
  EXPECT_EQ(one.statement, "SELECT 1");
  EXPECT_EQ(one.runner.place, "here");
  EXPECT_EQ(one.runner.pid, 42);
  EXPECT_EQ(one.runner.started, 4711);
  EXPECT_EQ(one.runner.seen_micros, 1'700'000'009'000'000);

  ASSERT_TRUE(jobs.Abandon(id, 1'700'000'010'000'000, JobState::kFailed, "lost", "why").ok());
  EXPECT_EQ(jobs.Find(id)->state, JobState::kFailed);
  EXPECT_EQ(jobs.Find(id)->error, "lost");
  job.id = other;
  job.state = JobState::kSucceeded;
  ASSERT_TRUE(jobs.Update(job).ok());
  ASSERT_TRUE(jobs.Abandon(other, 1'700'000'010'000'000, JobState::kCancelled, "lost", "").ok());
  EXPECT_EQ(jobs.Find(other)->state, JobState::kSucceeded) << "it has ended meanwhile";
  EXPECT_EQ(jobs.Answer(id).value(), "why");
  EXPECT_EQ(jobs.Answer(other).value(), "") << "none was kept";
  EXPECT_THAT(jobs.Running().value(), IsEmpty());
}

TEST_P(StoresTest, OneOfThoseWhoTakeAJobOverGetsIt) {
  JobStore& jobs = catalog().jobs();
  const JobRunner lost{"here", 42, 4711, 1};
  const JobRunner next{"here", 43, 5000, 2};
  const JobRunner other{"there", 43, 5000, 2};
  Job job;
  job.kind = "train";
  job.runner = lost;
  job.id = jobs.Create(job).value();
  EXPECT_TRUE(jobs.Seen(job.id, lost).value());
  EXPECT_TRUE(jobs.TakeOver(job.id, lost, next).value());
  EXPECT_FALSE(jobs.TakeOver(job.id, lost, other).value()) << "it is not the lost one's any more";
  EXPECT_EQ(jobs.Running().value().at(0).runner.pid, 43);
  EXPECT_FALSE(jobs.Seen(job.id, lost).value());
  EXPECT_TRUE(jobs.Seen(job.id, next).value());
  JobRunner whoever;
  whoever.seen_micros = 3;
  EXPECT_TRUE(jobs.Seen(job.id, whoever).value());
  EXPECT_EQ(jobs.Running().value().at(0).runner.seen_micros, 3);
  job.state = JobState::kSucceeded;
  ASSERT_TRUE(jobs.Update(job).ok());
  EXPECT_FALSE(jobs.TakeOver(job.id, next, other).value()) << "it has ended";
  EXPECT_TRUE(jobs.Seen(job.id, next).value()) << "nobody else runs it";
}

TEST_P(StoresTest, WhatAJobAnswersIsKeptWithIt) {
  JobStore& jobs = catalog().jobs();
  EXPECT_EQ(jobs.Answer(1).value(), "") << "there are no tables yet";
  Job job;
  job.answer = std::string("columns\0", 8);
  job.id = jobs.Create(job).value();
  EXPECT_EQ(jobs.Answer(job.id).value(), job.answer);
  job.state = JobState::kSucceeded;
  job.answer = "";
  ASSERT_TRUE(jobs.Update(job).ok());
  EXPECT_EQ(jobs.Answer(job.id).value(), std::string("columns\0", 8)) << "as it was";
  job.answer = std::string("rows\0\xff", 6);
  ASSERT_TRUE(jobs.Update(job).ok());
  EXPECT_EQ(jobs.Answer(job.id).value(), job.answer);
}

TEST_P(StoresTest, EventsAndMetricsKeepTheirOrder) {
  JobStore& jobs = catalog().jobs();
  std::vector<JobEvent> events;
  std::vector<JobMetric> metrics;
  for (int i = 0; i < 450; ++i) {
    events.push_back({1000 - i, "kind", std::to_string(i)});
    metrics.push_back({i, i * 10, "loss", i == 7 ? std::nan("") : i / 2.0});
  }
  ASSERT_TRUE(jobs.AddEvents(5, events).ok());
  ASSERT_TRUE(jobs.AddEvents(6, {{1, "other", "job"}}).ok());
  ASSERT_TRUE(jobs.AddMetrics(5, metrics).ok());
  const auto read_events = jobs.Events(5).value();
  ASSERT_THAT(read_events, SizeIs(450));
  EXPECT_EQ(read_events[449].detail, "449");
  EXPECT_EQ(read_events[449].micros, 551);
  const auto read_metrics = jobs.Metrics(5).value();
  ASSERT_THAT(read_metrics, SizeIs(450));
  EXPECT_EQ(read_metrics[3].step, 30);
  EXPECT_EQ(read_metrics[3].value, 1.5);
  EXPECT_TRUE(std::isnan(read_metrics[7].value));
}

TEST_P(StoresTest, FullSeriesLoseEverySecondPoint) {
  JobStore& jobs = catalog().jobs();
  std::vector<JobMetric> metrics;
  for (int i = 0; i < 10; ++i) {
    metrics.push_back({i, i, "loss", i * 1.0});
    if (i < 9) {
      metrics.push_back({i, i, "rows", i * 1.0});
    }
  }
  ASSERT_TRUE(jobs.AddMetrics(5, metrics).ok());
  ASSERT_TRUE(jobs.AddMetrics(6, metrics).ok());
  ASSERT_TRUE(jobs.ThinMetrics(5, 10).ok());
  const auto steps = [&jobs](int64_t job, const std::string& name) {
    std::vector<int64_t> steps_of;
    const std::vector<JobMetric> all = jobs.Metrics(job).value();
    for (const JobMetric& metric : all) {
      if (metric.name == name) {
        steps_of.push_back(metric.step);
      }
    }
    return steps_of;
  };
  EXPECT_THAT(steps(5, "loss"),
              ::testing::ElementsAre(0, 2, 4, 6, 8, 9));  // the first and the last stay
  EXPECT_THAT(steps(5, "rows"), SizeIs(9));               // not full
  EXPECT_THAT(steps(6, "loss"), SizeIs(10));              // another job's
}

// Models and jobs of earlier versions had no owner.
TEST_P(StoresTest, AnOlderCatalogGetsOwners) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no roles";
  }
  ASSERT_TRUE(catalog().models().Put(Model("m"), "w", true).ok());
  ASSERT_TRUE(catalog().jobs().Create(Job()).ok());
  Run("DO $$ DECLARE p record; BEGIN FOR p IN SELECT * FROM pg_policies WHERE schemaname = 'sluice'"
      " LOOP EXECUTE format('DROP POLICY %I ON sluice.%I', p.policyname, p.tablename);"
      " EXECUTE format('ALTER TABLE sluice.%I DISABLE ROW LEVEL SECURITY', p.tablename); END LOOP;"
      " END $$");
  Run("ALTER TABLE sluice.models DROP COLUMN owner");
  Run("ALTER TABLE sluice.models DROP COLUMN users");
  Run("ALTER TABLE sluice.jobs DROP COLUMN owner, DROP COLUMN owner_name");
  Run("REVOKE ALL ON ALL TABLES IN SCHEMA sluice FROM PUBLIC");
  const auto later = OpenCatalog(url());
  ASSERT_TRUE(later.ok());
  EXPECT_THAT((*later)->models().List().value(), SizeIs(1));
  EXPECT_THAT((*later)->jobs().List().value(), SizeIs(1));
  EXPECT_EQ(Select("SELECT m.owner, j.owner, m.users FROM sluice.models m, sluice.jobs j"),
            (Texts{{"postgres", "postgres", "{}"}}));
  EXPECT_EQ(Select("SELECT count(*) FROM pg_class WHERE relnamespace = 'sluice'::regnamespace"
                   " AND relkind = 'r' AND NOT relrowsecurity")[0][0],
            "0");
  Run("CREATE ROLE stranger_" + url().substr(url().rfind('_') + 1));
  const auto stranger = (*later)->For({"stranger_" + url().substr(url().rfind('_') + 1)});
  EXPECT_THAT(stranger->models().List().value(), IsEmpty());
  EXPECT_THAT(stranger->jobs().List().value(), IsEmpty());
  EXPECT_EQ(stranger->jobs().Find(1).status().code(), Code::kNotFound);
  EXPECT_EQ(stranger->jobs().Count().value(), 0);
  EXPECT_EQ(stranger->models().Put(Model("m"), "w", false).status().sqlstate(), "42501");
  EXPECT_TRUE(stranger->models().Put(Model("n"), "w", true).ok());
  EXPECT_THAT(stranger->models().List().value(), SizeIs(1));
  Run("UPDATE sluice.models SET owner = '4000000000' WHERE name = 'm'");
  EXPECT_THAT((*later)->models().List().value(), SizeIs(2)) << "a superuser sees what is left";
  EXPECT_EQ((*later)->For({"nobody_at_all"})->models().List().status().sqlstate(), "42704");
  Run("DROP ROLE stranger_" + url().substr(url().rfind('_') + 1));
}

// And those of the versions after them belonged to a role by its name.
TEST_P(StoresTest, OwnersByNameBecomeOwnersByOid) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no roles";
  }
  const std::string suffix = url().substr(url().rfind('_') + 1);
  const std::string ann = "Ann of_" + suffix;
  const std::string bob = "bob_" + suffix;
  Run("CREATE ROLE \"" + ann + "\"");
  Run("CREATE ROLE " + bob);
  for (const char* const name : {"m", "n", "o"}) {
    ASSERT_TRUE(catalog().models().Put(Model(name), "w", true).ok());
  }
  Job job;
  job.user = ann;
  ASSERT_TRUE(catalog().jobs().Create(job).ok());
  Run("DO $$ DECLARE p record; BEGIN FOR p IN SELECT * FROM pg_policies WHERE schemaname = 'sluice'"
      " LOOP EXECUTE format('DROP POLICY %I ON sluice.%I', p.policyname, p.tablename);"
      " END LOOP; END $$");
  Run("ALTER TABLE sluice.jobs DROP COLUMN owner, DROP COLUMN owner_name,"
      " ADD COLUMN owner text NOT NULL DEFAULT session_user");
  Run("ALTER TABLE sluice.models DROP COLUMN owner, DROP COLUMN users,"
      " ADD COLUMN owner text NOT NULL DEFAULT session_user,"
      " ADD COLUMN users text[] NOT NULL DEFAULT '{}'");
  Run("CREATE POLICY owned ON sluice.models USING (owner = current_user)");
  Run("CREATE POLICY owned ON sluice.jobs USING (owner = current_user)");
  Run("UPDATE sluice.jobs SET owner = '" + ann + "'");
  Run("UPDATE sluice.models SET owner = '" + ann + "', users = ARRAY['nobody_at_all', '" + bob +
      "'] WHERE name = 'm'");
  Run("UPDATE sluice.models SET owner = 'nobody_at_all', users = ARRAY['public'] WHERE name = 'n'");
  Run("UPDATE sluice.models SET owner = 'nobody_at_all' WHERE name = 'o'");
  Run("GRANT SELECT, INSERT, UPDATE ON sluice.result_tables TO PUBLIC");

  const auto later = OpenCatalog(url());
  ASSERT_TRUE(later.ok());
  EXPECT_THAT((*later)->models().List().value(), SizeIs(3));
  EXPECT_EQ(
      Select("SELECT name, owner::text, users::text FROM sluice.models ORDER BY name"),
      (Texts{{"m", "\"" + ann + "\"", "{" + bob + "}"}, {"n", "-", "{-}"}, {"o", "-", "{}"}}));
  const auto as_ann = (*later)->For({ann});
  EXPECT_THAT(as_ann->models().List().value(), SizeIs(2));
  EXPECT_EQ(as_ann->jobs().Find(1).value().user, ann);
  EXPECT_THAT((*later)->For({bob})->models().List().value(), SizeIs(2));
  EXPECT_EQ((*later)->For({bob})->models().CheckMayPut("", "m").sqlstate(), "42501");
  EXPECT_EQ(Select("SELECT has_table_privilege('" + bob +
                   "', 'sluice.result_tables', 'UPDATE'),"
                   " has_table_privilege('" +
                   bob + "', 'sluice.result_tables', 'INSERT')"),
            (Texts{{"f", "f"}}));
  Run("DROP ROLE \"" + ann + "\"");
  Run("DROP ROLE " + bob);
}

// Owners are roles, not names; reusing a name gives no access.
TEST_P(StoresTest, OwnersAreRolesAndNotTheirNames) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has no roles";
  }
  const std::string suffix = url().substr(url().rfind('_') + 1);
  const std::string ann = "ann_" + suffix;
  const std::string eve = "eve_" + suffix;
  const std::string guest = "guest_" + suffix;
  Run("CREATE ROLE " + ann);
  Run("CREATE ROLE " + guest);
  const auto before = catalog().For({ann});
  ASSERT_TRUE(before->models().Put(Model("m"), "w", true).ok());
  ASSERT_TRUE(before->models().GrantUsage("", "m", {guest, "public"}).ok());
  ASSERT_TRUE(before->models().RevokeUsage("", "m", {"public"}).ok());
  Job job;
  job.user = ann;
  ASSERT_TRUE(before->jobs().Create(job).ok());
  job.user = "claimed";
  ASSERT_TRUE(before->jobs().Create(job).ok());

  Run("ALTER ROLE " + ann + " RENAME TO " + eve);
  Run("CREATE ROLE " + ann);
  const auto renamed = catalog().For({eve});
  EXPECT_THAT(renamed->models().List().value(), SizeIs(1));
  EXPECT_EQ(renamed->jobs().Find(1).value().user, eve) << "its name of today";
  EXPECT_EQ(renamed->jobs().Find(2).value().user, "claimed");
  EXPECT_TRUE(renamed->models().Put(Model("m"), "w", false).ok());
  EXPECT_EQ(Select("SELECT owner::text, users::text FROM sluice.models"),
            (Texts{{eve, "{" + guest + "}"}}));
  // A session from before the change keeps its role.
  EXPECT_TRUE(before->models().Put(Model("m"), "w", false).ok());
  EXPECT_THAT(before->jobs().List().value(), SizeIs(2));
  // The role that has the name now is a different one, also in plain SQL.
  const auto stranger = catalog().For({ann});
  EXPECT_THAT(stranger->models().List().value(), IsEmpty());
  EXPECT_EQ(stranger->jobs().Count().value(), 0);
  EXPECT_EQ(stranger->models().Put(Model("m"), "w", false).status().sqlstate(), "42501");
  const auto seen_by = [&](const std::string& role) {
    Run("SET ROLE " + role);
    const Texts seen = Select(
        "SELECT (SELECT count(*) FROM sluice.models),"
        " (SELECT count(*) FROM sluice.model_versions),"
        " (SELECT count(*) FROM sluice.jobs)");
    Run("RESET ROLE");
    return seen;
  };
  EXPECT_EQ(seen_by(eve), (Texts{{"1", "3", "2"}}));
  EXPECT_EQ(seen_by(ann), (Texts{{"0", "0", "0"}}));
  EXPECT_EQ(seen_by(guest), (Texts{{"1", "3", "0"}}));

  // A role that takes a dropped role's name inherits nothing.
  for (const std::string& gone : {eve, guest}) {
    Run("DROP ROLE " + gone);
    Run("CREATE ROLE " + gone);
  }
  EXPECT_THAT(catalog().For({eve})->models().List().value(), IsEmpty());
  EXPECT_THAT(catalog().For({guest})->models().List().value(), IsEmpty());
  EXPECT_EQ(seen_by(eve), (Texts{{"0", "0", "0"}}));
  EXPECT_EQ(seen_by(guest), (Texts{{"0", "0", "0"}}));
  // What the dropped role had begun is still stored, for superusers.
  EXPECT_TRUE(before->models().Put(Model("m"), "w", false).ok());
  EXPECT_THAT(catalog().models().List().value(), SizeIs(1));
  EXPECT_EQ(catalog().jobs().Find(1).value().user, ann) << "the name that it had";
  for (const std::string& role : {ann, eve, guest}) {
    Run("DROP ROLE " + role);
  }
}

ON_BOTH_DATABASES(StoresTest);

}  // namespace
}  // namespace sluice::catalog
