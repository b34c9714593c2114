#include <gmock/gmock.h>

#include <string>

#include "models/model.pb.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "planner/stored_plan.h"
#include "tests/planner/fake_source.h"
#include "tests/support/allocation_meter.h"

// Requests of a statement or a stored plan are checked against the memory limit before anything is
// allocated.
namespace sluice::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int64_t kGibibyte = int64_t{1} << 30;

class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() { source_.tables["t"] = SmallCensus(400); }

  Result<plan::Plan> Plan(const std::string& type, const std::string& attributes,
                          int64_t memory_bytes, const std::string& columns = "") {
    script_ = "SELECT * FROM t TO TRAIN " + type + " WITH " + attributes + columns +
              " LABEL income INTO m";
    const auto parsed = parser::Parse(script_);
    EXPECT_TRUE(parsed.ok()) << parsed.status().ToString();
    Options options;
    options.memory_bytes = memory_bytes;
    return MakePlan(std::get<parser::TrainStatement>(parsed->at(0)), source_, source_.models(),
                    options);
  }
  std::string Place(const Status& status) const {
    const Span span = status.diagnostics().front().span;
    return script_.substr(static_cast<size_t>(span.begin),
                          static_cast<size_t>(span.end - span.begin));
  }

  FakeSource source_;
  std::string script_;
};

// However few rows there are, each tree may have a leaf for each.
TEST_F(MemoryLimitTest, TreesAreHeldAgainstIt) {
  for (const char* const type : {"xgboost.gbtree", "xgboost.dart", "XGBRFClassifier"}) {
    const auto plan =
        Plan(type, "max_depth=64, num_parallel_tree=100000, train.num_boost_round=1000", kGibibyte);
    EXPECT_EQ(plan.status().sqlstate(), "53200") << type << plan.status().ToString();
    EXPECT_THAT(plan.status().message(), HasSubstr("--memory-limit is 1.0 GB"));
    EXPECT_EQ(Place(plan.status()), "100000");
  }
  EXPECT_FALSE(Plan("xgboost.gbtree", "max_depth=0, train.num_boost_round=100000", kGibibyte).ok());
  EXPECT_TRUE(Plan("xgboost.gbtree", "train.num_boost_round=50000", kGibibyte).ok());
  EXPECT_TRUE(Plan("xgboost.gblinear", "train.num_boost_round=100000", kGibibyte).ok());
  EXPECT_TRUE(Plan("xgboost.gbtree", "max_depth=64, train.num_boost_round=1000", kGibibyte).ok());
}

TEST_F(MemoryLimitTest, LayersAreHeldAgainstIt) {
  const AllocationMeter meter;
  const auto plan = Plan("DNNClassifier", "model.hidden_units=[65536,65536]", kGibibyte);
  EXPECT_EQ(plan.status().sqlstate(), "53200");
  EXPECT_THAT(plan.status().message(), StartsWith("training DNNClassifier takes 64."));
  EXPECT_THAT(plan.status().message(), HasSubstr("--memory-limit is 1.0 GB"));
  EXPECT_EQ(Place(plan.status()), "[65536,65536]");
  EXPECT_THAT(plan.status().diagnostics().front().hint, HasSubstr("a larger --memory-limit"));
  EXPECT_LT(meter.Peak(), size_t{64} << 20);
  EXPECT_TRUE(Plan("DNNClassifier", "model.hidden_units=[65536,65536]", 100 * kGibibyte).ok());
  EXPECT_TRUE(Plan("DNNClassifier", "model.hidden_units=[64,32]", kGibibyte).ok());
}

// A worker and a server exchange all that the server has in one message.
TEST_F(MemoryLimitTest, WhatEachServerExchangesIsHeldAgainstAMessage) {
  const std::string layers = "model.hidden_units=[16384,16384], engine.num_workers=2";  // 1 GiB
  const auto few = Plan("DNNClassifier", layers + ", engine.num_ps=2", 100 * kGibibyte);
  EXPECT_EQ(few.status().sqlstate(), "54000");
  EXPECT_THAT(few.status().message(), HasSubstr("MB with each of 2 parameter servers at once"));
  EXPECT_EQ(Place(few.status()), "2");
  EXPECT_THAT(few.status().diagnostics().front().hint, StartsWith("engine.num_ps=3"));
  const auto enough = Plan("DNNClassifier", layers + ", engine.num_ps=3", 100 * kGibibyte);
  EXPECT_TRUE(enough.ok()) << enough.status().ToString();
  const auto half =
      Plan("DNNClassifier", layers + ", engine.num_ps=2, engine.transport='bf16'", 100 * kGibibyte);
  EXPECT_TRUE(half.ok()) << half.status().ToString();
  const auto chosen = Plan("DNNClassifier", layers, 100 * kGibibyte);
  ASSERT_TRUE(chosen.ok()) << chosen.status().ToString();
  EXPECT_EQ(chosen->train().strategy().parameter_servers(), 3U);
}

TEST_F(MemoryLimitTest, NoProductOverflows) {
  std::string widest = "model.hidden_units=[65536";
  for (int i = 1; i < 64; ++i) {
    widest += ",65536";
  }
  const auto plan = Plan("DNNClassifier", widest + "]", kGibibyte);
  EXPECT_EQ(plan.status().sqlstate(), "53200");
  const auto wide =
      Plan("DNNLinearCombinedClassifier", "model.dnn_hidden_units=[65536,65536]", kGibibyte);
  EXPECT_EQ(wide.status().sqlstate(), "53200");
  EXPECT_EQ(Place(wide.status()), "[65536,65536]");
}

// Rows of a table are created when the data touches them.
TEST_F(MemoryLimitTest, TablesCountByTheRowsThatTheDataCanTouch) {
  EXPECT_TRUE(Plan("DNNClassifier", "model.hidden_units=[8]", kGibibyte,
                   " COLUMN EMBEDDING(CATEGORY_HASH(workclass, 2000000000), 64, 'sum')")
                  .ok());
}

TEST_F(MemoryLimitTest, TheBatchCounts) {
  const auto plan =
      Plan("DNNClassifier", "model.hidden_units=[4096,16], train.batch_size=1000000", kGibibyte);
  EXPECT_EQ(plan.status().sqlstate(), "53200");
}

TEST_F(MemoryLimitTest, ABatchWhoseValuesAreTooManyIsRefusedAtItsSize) {
  std::string wide = "model.hidden_units=[65536";
  for (int i = 1; i < 10; ++i) {
    wide += ",65536";
  }
  const auto plan =
      Plan("DNNClassifier", wide + "], train.batch_size=1000000", 100'000 * kGibibyte);
  EXPECT_EQ(plan.status().sqlstate(), "22023");
  EXPECT_THAT(plan.status().message(), HasSubstr("the values of a batch have more than"));
  EXPECT_EQ(Place(plan.status()), "1000000");
  // No batch has more rows than there are.
  const auto few =
      Plan("DNNClassifier", "model.hidden_units=[1024], train.batch_size=1000000", 100 * kGibibyte);
  EXPECT_TRUE(few.ok()) << few.status().ToString();
}

class StoredPlanTest : public ::testing::Test {
 protected:
  static plan::TrainPlan Small() {
    plan::TrainPlan plan;
    plan.mutable_model()->set_type("DNNClassifier");
    models::FeaturePlan* features = plan.mutable_model()->mutable_features();
    features->add_inputs()->set_name("a");
    features->mutable_inputs(0)->set_type(2);
    features->add_features()->add_inputs(0);
    features->mutable_label()->set_column("y");
    features->mutable_label()->set_kind(models::LabelPlan::CLASS);
    features->mutable_label()->set_type(4);
    return plan;
  }
  static std::string Refusal(const std::string& bytes) {
    const AllocationMeter meter;
    const auto plan = ReadStoredPlan(bytes);
    EXPECT_LT(meter.Peak(), size_t{16} << 20);
    EXPECT_EQ(plan.status().sqlstate(), plan.ok() ? "00000" : "XX001");
    return plan.ok() ? "" : plan.status().message();
  }
};

TEST_F(StoredPlanTest, WhatIsNoPlanIsRefused) {
  EXPECT_TRUE(ReadStoredPlan(Small().SerializeAsString()).ok());
  constexpr char kDamaged[] = "the stored plan of the model is damaged: it cannot be read";
  EXPECT_EQ(Refusal("\xff"), kDamaged);
  plan::TrainPlan plan = Small();
  models::Categorizer* categorizer =
      plan.mutable_model()->mutable_features()->mutable_features(0)->mutable_categorizer();
  for (int i = 0; i < 50; ++i) {
    categorizer = categorizer->add_members();
  }
  EXPECT_EQ(Refusal(plan.SerializeAsString()), kDamaged);
}

TEST_F(StoredPlanTest, EmptyMessagesDoNotAmplify) {
  plan::TrainPlan plan = Small();
  std::string bytes = plan.SerializeAsString();
  // ModelSpec (3) { FeaturePlan (2) { two million empty features (2) } }
  std::string features;
  for (int i = 0; i < 2'000'000; ++i) {
    features += std::string("\x12\x00", 2);
  }
  const auto wrap = [](char tag, const std::string& body) {
    std::string message(1, tag);
    for (size_t size = body.size();; size >>= 7U) {
      message += static_cast<char>((size & 0x7fU) | (size >= 0x80U ? 0x80U : 0U));
      if (size < 0x80U) {
        break;
      }
    }
    return message + body;
  };
  EXPECT_EQ(Refusal(bytes + wrap('\x1a', wrap('\x12', features))),
            "the stored plan of the model is damaged: it cannot be read");
}

TEST_F(StoredPlanTest, NumbersOfOthersAreChecked) {
  plan::TrainPlan plan = Small();
  plan.mutable_model()->mutable_features()->mutable_inputs(0)->set_type(77);
  EXPECT_THAT(Refusal(plan.SerializeAsString()),
              HasSubstr("column 'a' has no type that exists: 77"));
  plan = Small();
  plan.mutable_model()->mutable_features()->mutable_label()->clear_column();
  EXPECT_THAT(Refusal(plan.SerializeAsString()), HasSubstr("its label has no column"));
  plan = Small();
  plan.mutable_model()->mutable_features()->mutable_label()->set_type(-1);
  EXPECT_THAT(Refusal(plan.SerializeAsString()), HasSubstr("has no type that exists: -1"));
  plan = Small();
  plan.mutable_model()->mutable_features()->mutable_features(0)->set_inputs(0, 1);
  EXPECT_THAT(Refusal(plan.SerializeAsString()), HasSubstr("reads column 1 of 1"));
}

TEST_F(MemoryLimitTest, TreesHoldEveryNumberOfAVector) {
  const auto bytes = [this](const std::string& shape) {
    const auto plan = Plan("xgboost.gbtree", "max_depth=6", 100 * kGibibyte,
                           " COLUMN DENSE(workclass, " + shape + ", ',')");
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? plan->train().estimated_memory_bytes() : 0;
  };
  EXPECT_GT(bytes("10000"), bytes("2") + 50'000'000);
}

}  // namespace
}  // namespace sluice::planner
