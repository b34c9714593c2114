#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "catalog/compiled_types.h"
#include "tests/catalog/store/stores_fixture.h"
#include "tests/support/eventually.h"

namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using ModelStoreTest = StoresTest;

TEST_P(ModelStoreTest, ReadingCreatesNothing) {
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

TEST_P(ModelStoreTest, AModelComesBackAsItWasStored) {
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

TEST_P(ModelStoreTest, AModelWithoutWeightsIsFine) {
  ASSERT_TRUE(catalog().models().Put(Model("m"), "", false).ok());
  const auto found = catalog().models().Find("", "m", 1);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(catalog().models().LoadWeights(*found).value(), "");
}

TEST_P(ModelStoreTest, DamagedWeightsAreNoticed) {
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
TEST_P(ModelStoreTest, WeightsAreFoundAfterTheModelWasRenamed) {
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

TEST_P(ModelStoreTest, WhatIsStoredWhileTheModelGoesAwayIsANewModel) {
  if (!postgres()) {
    GTEST_SKIP() << "one writer at a time";
  }
  ASSERT_TRUE(catalog().models().Put(Model("m"), "old", true).ok());
  Run("BEGIN");
  Select("SELECT 1 FROM " + Table("models") + " FOR UPDATE");
  Result<ModelVersion> put = Internal("not stored");
  std::thread training([&] { put = catalog().models().Put(Model("m"), "new", false); });
  EXPECT_TRUE(Eventually([this] {
    return !Select("SELECT 1 FROM pg_locks WHERE NOT granted").empty();
  })) << "it does not wait for us";
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
TEST_P(ModelStoreTest, NumbersOfAModelRowAreNotTrusted) {
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

TEST_P(ModelStoreTest, MetricsOfAModelRowAreNotTrusted) {
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

TEST_P(ModelStoreTest, VersionsPromoteRollbackDrop) {
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

TEST_P(ModelStoreTest, WhatWasUsedLongestAgoGoesFirst) {
  ModelStore& models = catalog().models();
  const auto put = [&](const std::string& schema, const std::string& name) {
    ModelVersion model = Model(name);
    model.schema = schema;
    const auto stored = models.Put(model, std::string(100, 'w'), true);
    EXPECT_TRUE(stored.ok()) << stored.status().ToString();
    return *stored;
  };
  const ModelVersion other = put("elsewhere", "x");
  std::vector<ModelVersion> kept;
  for (const char* name : {"a", "b", "c", "d"}) {
    kept.push_back(put("kept", name));
  }
  const auto names = [&] {
    std::string found;
    for (const ModelVersion& model : models.List().value()) {
      found += model.name;
    }
    return found;
  };
  constexpr int64_t kHour = int64_t{3600} * 1'000'000;
  ASSERT_TRUE(models.KeepLatest(kept[3], {2, 1000, kHour}).ok());
  EXPECT_EQ(names(), "xabcd");  // all of them were used within the hour
  ASSERT_TRUE(models.KeepLatest(kept[0], {3, 1000, 0}).ok());
  EXPECT_EQ(names(), "xacd");
  ASSERT_TRUE(models.KeepLatest(kept[3], {3, 250, 0}).ok());  // by bytes, too
  EXPECT_EQ(names(), "xad");
  EXPECT_EQ(models.LoadWeights(kept[0]).value(), std::string(100, 'w'));
  EXPECT_EQ(models.KeepLatest(kept[1], {3, 1000, 0}).code(), Code::kNotFound);
}

TEST_P(ModelStoreTest, WhatAJobBeginsWithStaysUntilItHasEnded) {
  ModelStore& types = catalog().model_types();
  std::vector<ModelVersion> forms;
  for (const char* key : {"used", "unused", "newest"}) {
    ModelVersion form = Model(key);
    form.schema = kCompiledTypes;
    const auto stored = types.Put(form, std::string(100, 'w'), true);
    ASSERT_TRUE(stored.ok()) << stored.status().ToString();
    forms.push_back(*stored);
  }
  Job job;
  job.kind = "train";
  const auto id = catalog().jobs().Create(job);
  ASSERT_TRUE(id.ok()) << id.status().ToString();
  ASSERT_TRUE(catalog().jobs().KeepRecord(*id, RecordOfForm("used"), "").ok());
  const auto exists = [&](const char* key) {
    return types.Find(kCompiledTypes, key, std::nullopt).ok();
  };
  ASSERT_TRUE(types.KeepLatest(forms[2], {1, 1000, 0}).ok());
  EXPECT_TRUE(exists("used"));
  EXPECT_FALSE(exists("unused"));
  EXPECT_TRUE(exists("newest"));
  job.id = *id;
  job.state = JobState::kSucceeded;
  job.finished_micros = 1;
  ASSERT_TRUE(catalog().jobs().End(job).ok());
  ASSERT_TRUE(types.KeepLatest(forms[2], {1, 1000, 0}).ok());
  EXPECT_FALSE(exists("used"));
  EXPECT_TRUE(exists("newest"));
}

TEST_P(ModelStoreTest, AnExistingModelCanBeRefused) {
  ASSERT_TRUE(catalog().models().Put(Model("m"), "w", true).ok());
  const auto again = catalog().models().Put(Model("m"), "w", true);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().sqlstate(), "42710");
  EXPECT_THAT(catalog().models().Versions("", "m").value(), SizeIs(1));
}

TEST_P(ModelStoreTest, TheNearestModelIsNamed) {
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

TEST_P(ModelStoreTest, AFailedPutLeavesNothing) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite takes any text as JSON";
  }
  ModelVersion model = Model("m");
  model.lineage = "not json";
  EXPECT_FALSE(catalog().models().Put(model, "w", true).ok());
  EXPECT_FALSE(catalog().models().Find("", "m", std::nullopt).ok());
  EXPECT_EQ(Select("SELECT count(*) FROM sluice.models")[0][0], "0");
}

TEST_P(ModelStoreTest, RowsOfAnEpochStandInTheLineage) {
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

TEST_P(ModelStoreTest, ConcurrentPutsMakeVersions) {
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

ON_BOTH_DATABASES(ModelStoreTest);

}  // namespace
}  // namespace sluice::catalog
