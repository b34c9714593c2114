// A model type that is a graph: its builder is called where the statement is planned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/model.h"
#include "models/model.pb.h"
#include "planner/explain.h"
#include "planner/plan.pb.h"
#include "tests/planner/plan_of.h"

namespace sluice::planner {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PlannedFamilies : public ::testing::Test {
 protected:
  PlannedFamilies() { source_.tables["census"] = SmallCensus(400); }

  Result<plan::Plan> Plan(const std::string& text) { return PlanOf(text, source_); }
  // Of a statement that is wrong: the message, and the text that it points at.
  void ExpectError(const std::string& text, const std::string& message, const std::string& place) {
    const Result<plan::Plan> planned = Plan(text);
    ASSERT_FALSE(planned.ok()) << text;
    EXPECT_THAT(planned.status().ToString(), HasSubstr(message));
    const Span span = planned.status().diagnostics().front().span;
    ASSERT_TRUE(span.valid()) << planned.status().ToString();
    EXPECT_EQ(
        text.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin)),
        place);
  }
  FakeSource source_;
};

TEST_F(PlannedFamilies, ThePlanHoldsAGraphThatANetworkIsMadeOf) {
  for (const char* type : {"FMClassifier", "DeepFMClassifier", "DCNClassifier"}) {
    const auto planned = Plan(std::string("SELECT * FROM census TO TRAIN ") + type +
                              " WITH model.k=4 LABEL income INTO m");
    ASSERT_TRUE(planned.ok()) << type << ": " << planned.status().ToString();
    const plan::TrainPlan& train = planned->train();
    ASSERT_TRUE(train.model().has_graph()) << type;
    EXPECT_GT(train.model().graph().tables_size(), 0) << type;
    const auto network = models::Network::Make(train.model());
    ASSERT_TRUE(network.ok()) << network.status().ToString();
    EXPECT_EQ(train.parameter_count(), (*network)->parameter_count());
  }
}

TEST_F(PlannedFamilies, OtherNetworksHaveNone) {
  const auto planned = Plan("SELECT * FROM census TO TRAIN DNNClassifier LABEL income INTO m");
  ASSERT_TRUE(planned.ok()) << planned.status().ToString();
  EXPECT_FALSE(planned->train().model().has_graph());
  EXPECT_THAT(ExplainText(*planned), Not(HasSubstr("operators")));
}

TEST_F(PlannedFamilies, ExplainPrintsLayersParametersAndTables) {
  const auto planned = Plan(
      "SELECT * FROM census TO TRAIN DeepFMClassifier WITH model.k=4, "
      "model.hidden_units=[8] LABEL income INTO m");
  ASSERT_TRUE(planned.ok()) << planned.status().ToString();
  const std::string text = ExplainText(*planned);
  EXPECT_THAT(text, HasSubstr("operators\n"));
  EXPECT_THAT(text, HasSubstr("    deep/0: Gemm, Relu\n"));
  EXPECT_THAT(text, HasSubstr("    deep/0/bias: [8], zeros\n"));
  EXPECT_THAT(text, HasSubstr(" rows of 5, normal:0.01\n"));
  EXPECT_THAT(ExplainJson(*planned), HasSubstr("\"deep/0: Gemm, Relu\""));
}

// A model continues from its own graph: the family may have changed since.
TEST_F(PlannedFamilies, AModelToContinueFromBringsItsGraph) {
  auto first =
      Plan("SELECT * FROM census TO TRAIN FMClassifier WITH model.k=3 LABEL income INTO m");
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  first->mutable_train()->mutable_model()->mutable_graph()->mutable_nodes(0)->set_name("of old");
  catalog::ModelVersion version;
  version.name = "m";
  version.plan = first->train().SerializeAsString();
  ASSERT_TRUE(source_.models().Put(version, "", false).ok());
  const auto second =
      Plan("SELECT * FROM census TO TRAIN FMClassifier LABEL income USING m INTO n");
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(second->train().model().graph().nodes(0).name(), "of old");
}

TEST_F(PlannedFamilies, WhatIsWrongIsShownAtItsPlace) {
  ExpectError("SELECT * FROM census TO TRAIN FMClassifier WITH model.k=0 LABEL income INTO m",
              "model.k", "0");
  ExpectError("SELECT * FROM census TO TRAIN FMClassifier WITH model.l2=-1 LABEL income INTO m",
              "model.l2", "-1");
  ExpectError(
      "SELECT * FROM census TO TRAIN DCNClassifier WITH model.cross_rank=1.5 LABEL income INTO m",
      "model.cross_rank", "1.5");
}

TEST_F(PlannedFamilies, ALossThatDoesNotFitTheNumbersIsShownAtItsPlace) {
  FakeTable paid;
  paid.schema.columns = {ColumnOf("x", DataType::kDouble), ColumnOf("y", DataType::kDouble)};
  for (int64_t i = 0; i < 300; ++i) {
    paid.rows.push_back(
        {Value(static_cast<double>(i % 9)), Value(static_cast<double>(i % 50) / 4)});
  }
  source_.tables["paid"] = paid;
  ExpectError("SELECT * FROM paid TO TRAIN FMRegressor WITH model.loss='gamma' LABEL y INTO m",
              "loss Gamma is for numbers above 0, and label 'y' has 0", "'gamma'");
  EXPECT_TRUE(
      Plan("SELECT * FROM paid TO TRAIN FMRegressor WITH model.loss='tweedie' LABEL y INTO m")
          .ok());
  ExpectError("SELECT * FROM paid TO TRAIN FMRegressor WITH loss.variance_power=1.2 LABEL y INTO m",
              "attribute loss.variance_power is for model.loss = Tweedie", "1.2");
}

}  // namespace
}  // namespace sluice::planner
