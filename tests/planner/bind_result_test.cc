// Where a statement's rows go: names as written, and what is to be done with the table.
#include <gmock/gmock.h>

#include "planner/plan.pb.h"
#include "tests/planner/plan_of.h"

namespace sluice::planner {
namespace {

using ::testing::HasSubstr;

class BindResultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    source_.tables["t"] = SmallCensus(400);
    source_.tables["taken"] = SmallCensus(4);
    const auto trained = Plan("SELECT * FROM t TO TRAIN LinearClassifier LABEL income INTO m");
    ASSERT_TRUE(trained.ok()) << trained.status().ToString();
    catalog::ModelVersion version;
    version.name = "m";
    version.plan = trained->train().SerializeAsString();
    ASSERT_TRUE(source_.models().Put(version, "", false).ok());
  }

  Result<plan::Plan> Plan(const std::string& text) { return PlanOf(text, source_); }
  plan::PredictPlan Predict(const std::string& target) {
    const auto plan = Plan("SELECT * FROM t TO PREDICT " + target + " USING m");
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? plan->predict() : plan::PredictPlan();
  }

  FakeSource source_;
};

TEST_F(BindResultTest, QuotesDecideForEachPart) {
  struct Case {
    std::string target, schema, name, column;
  };
  for (const Case& one : std::vector<Case>{{"OutT.PredC", "public", "outt", "predc"},
                                           {"\"OutT\".PredC", "public", "OutT", "predc"},
                                           {"OutT.\"PredC\"", "public", "outt", "PredC"},
                                           {"Lab.\"Out Table\".y", "lab", "Out Table", "y"},
                                           {"\"Lab\".Out.\"y.z\"", "Lab", "out", "y.z"},
                                           {"\"a.b\".y", "public", "a.b", "y"},
                                           {"\"a\"\"b\".y", "public", "a\"b", "y"}}) {
    const plan::PredictPlan plan = Predict(one.target);
    EXPECT_EQ(plan.table().schema(), one.schema) << one.target;
    EXPECT_EQ(plan.table().name(), one.name) << one.target;
    EXPECT_EQ(plan.column(), one.column) << one.target;
    EXPECT_EQ(plan.table().schema_written(), one.schema != "public") << one.target;
  }
  EXPECT_FALSE(Predict("Income").has_table());
  EXPECT_EQ(Predict("Income").column(), "income");
  const auto deep = Plan("SELECT * FROM t TO PREDICT a.b.c.d USING m");
  EXPECT_EQ(deep.status().sqlstate(), "42601");
}

TEST_F(BindResultTest, TheSourceIsToldWhatIsAskedFor) {
  ASSERT_TRUE(Plan("SELECT * FROM t TO PREDICT Taken.y WITH result.append = true USING m").ok());
  EXPECT_TRUE(source_.planned_table.append);
  EXPECT_FALSE(source_.planned_table.replace);
  EXPECT_EQ(source_.planned_table.name, (catalog::TableName{"", "taken"}));
  const std::vector<std::string> planned = source_.planned_columns.Names();
  EXPECT_EQ(std::vector<std::string>(planned.end() - 2, planned.end()),
            (std::vector<std::string>{"y", "actual"}));
  const auto replaced =
      Plan("SELECT * FROM t TO EVALUATE m WITH result.replace = true LABEL income INTO taken");
  ASSERT_TRUE(replaced.ok()) << replaced.status().ToString();
  EXPECT_TRUE(source_.planned_table.replace);
  EXPECT_TRUE(replaced->evaluate().table().replace());
  const auto both = Plan(
      "SELECT * FROM t TO PREDICT p.y WITH result.replace = true, result.append = true USING m");
  EXPECT_EQ(both.status().sqlstate(), "22023");
  EXPECT_TRUE(both.status().diagnostics()[0].span.valid());
  for (const std::string statement : {"TO PREDICT WITH result.append = true USING m",
                                      "TO EVALUATE m WITH result.append = true LABEL income"}) {
    const auto none = Plan("SELECT * FROM t " + statement);
    EXPECT_EQ(none.status().sqlstate(), "22023") << statement;
    EXPECT_THAT(none.status().message(), HasSubstr("writes none")) << statement;
  }
}

}  // namespace
}  // namespace sluice::planner
