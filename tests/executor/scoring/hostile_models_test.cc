// Forged model rows: PREDICT, EVALUATE, EXPLAIN and USING refuse them, or handle them safely.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <random>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/model_record.h"
#include "catalog/model_store.h"
#include "executor/executor.h"
#include "models/checksum_internal.h"
#include "models/model.pb.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/extended_of.h"
#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

class HostileModelsTest : public SqliteTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(SqliteTest::SetUp());
    std::string rows = "CREATE TABLE t (a REAL, b INTEGER, c TEXT, y TEXT); INSERT INTO t VALUES ";
    for (int i = 0; i < 300; ++i) {
      rows += (i == 0 ? "(" : ",(") + std::to_string(i % 17) + "," + std::to_string(i % 5) + ",'c" +
              std::to_string(i % 7) + "','" + (i % 17 > 8 ? "yes" : "no") + "')";
    }
    Execute(rows);
  }
  void Execute(const std::string& sql) {
    const auto parsed = parser::Parse(sql);
    ASSERT_TRUE(parsed.ok());
    for (const parser::Statement& statement : *parsed) {
      const auto done =
          source_->Execute(std::get<parser::PlainStatement>(statement).text, nullptr, {});
      ASSERT_TRUE(done.ok()) << done.status().ToString();
    }
  }
  Status Run(const std::string& sql) {
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    const auto extended = ExtendedOf(statements.at(0));
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(*extended, *source_, catalog_->models(), {}));
    Context context{*source_, *catalog_, "tester", sql, {}};
    RecordingSink sink;
    return executor::Execute(plan, context, sink);
  }

  // Stores new bytes in the newest version of m, with matching checksums.
  void Store(const std::string& plan, std::string weights) {
    uint64_t checksum = 0;
    constexpr size_t kMagic = 4;
    if (weights.starts_with("SLXG")) {
      checksum = models::ChecksumOf(std::string_view(weights).substr(kMagic + sizeof(checksum)));
      std::memcpy(weights.data() + kMagic, &checksum, sizeof(checksum));
    } else {
      const size_t body = weights.size() - sizeof(checksum);
      checksum = models::ChecksumOf(std::string_view(weights).substr(0, body));
      std::memcpy(weights.data() + body, &checksum, sizeof(checksum));
    }
    catalog::ModelVersion version = catalog_->models().Find("", "m", std::nullopt).value();
    version.plan = plan;
    ASSERT_TRUE(catalog_->models().Put(version, weights, false).ok());
  }
  void UseEverywhere() {
    Run("SELECT * FROM t TO PREDICT USING m").ok();
    Run("SELECT * FROM t TO EVALUATE m LABEL y").ok();
    Run("SELECT * FROM t TO EXPLAIN m").ok();
  }
  static std::string Mutated(std::string bytes, std::mt19937* random) {
    const char values[] = {'\0', '\x7f', '\xff', '\x01', static_cast<char>((*random)())};
    for (size_t n = (*random)() % 3; n < 3; ++n) {
      bytes[(*random)() % bytes.size()] = values[(*random)() % 5];
    }
    return bytes;
  }
};

TEST_F(HostileModelsTest, ChangedBytesOfEveryFamily) {
  for (const char* train :
       {"SELECT * FROM t TO TRAIN xgboost.gbtree WITH train.num_boost_round=3 LABEL y INTO m",
        "SELECT * FROM t TO TRAIN DNNLinearCombinedClassifier WITH model.dnn_hidden_units=[4,3],"
        " train.epoch=1 COLUMN EMBEDDING(c, 3, 'sum') LABEL y INTO m"}) {
    const Status trained = Run(train);
    ASSERT_TRUE(trained.ok()) << trained.ToString();
    const auto version = catalog_->models().Find("", "m", std::nullopt).value();
    const std::string weights = catalog_->models().LoadWeights(version).value();
    std::mt19937 random(5);
    for (int i = 0; i < 15; ++i) {
      Store(version.plan, Mutated(weights, &random));
      UseEverywhere();
      Store(Mutated(version.plan, &random), weights);
      UseEverywhere();
    }
    Store(version.plan, weights);
    EXPECT_TRUE(Run("SELECT * FROM t TO PREDICT USING m").ok());
  }
}

TEST_F(HostileModelsTest, AWideLayerOfAPlanIsHeldAgainstTheWeights) {
  ASSERT_TRUE(Run("SELECT * FROM t TO TRAIN DNNClassifier WITH model.hidden_units=[4],"
                  " train.epoch=1 LABEL y INTO m")
                  .ok());
  const auto version = catalog_->models().Find("", "m", std::nullopt).value();
  plan::TrainPlan plan;
  ASSERT_TRUE(plan.ParseFromString(version.plan));
  for (models::Attribute& attribute : *plan.mutable_model()->mutable_attributes()) {
    if (attribute.name() == "model.hidden_units") {
      attribute.mutable_numbers()->clear_values();
      attribute.mutable_numbers()->add_values(65536);
      attribute.mutable_numbers()->add_values(65536);
    }
  }
  Store(plan.SerializeAsString(), catalog_->models().LoadWeights(version).value());
  const Status status = Run("SELECT * FROM t TO PREDICT USING m");
  EXPECT_NE(status.message().find("the weights have"), std::string::npos) << status.ToString();
}

TEST_F(HostileModelsTest, AModelThatDoesNotFitTheMemoryIsNotRead) {
  ASSERT_TRUE(
      Run("SELECT * FROM t TO TRAIN xgboost.gbtree WITH train.num_boost_round=3 LABEL y INTO m")
          .ok());
  Execute("UPDATE sluice_model_versions SET weights_bytes = 4611686018427387904");
  const Status status = Run("SELECT * FROM t TO PREDICT USING m");
  EXPECT_EQ(status.sqlstate(), "53200") << status.ToString();
  Execute("UPDATE sluice_model_versions SET weights_bytes = -1");
  EXPECT_EQ(Run("SELECT * FROM t TO PREDICT USING m").sqlstate(), "XX001");
}

}  // namespace
}  // namespace sluice::executor
