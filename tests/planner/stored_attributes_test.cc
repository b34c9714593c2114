#include <gmock/gmock.h>

#include <string>

#include "planner/plan.pb.h"
#include "planner/stored_plan.h"

namespace sluice::planner {
namespace {

using ::testing::HasSubstr;

models::Attribute* AddAttribute(const char* name, plan::TrainPlan* plan) {
  models::Attribute* attribute = plan->mutable_model()->add_attributes();
  attribute->set_name(name);
  return attribute;
}

std::string Refusal(const plan::TrainPlan& plan) {
  const auto read = ReadStoredPlan(plan.SerializeAsString());
  EXPECT_TRUE(read.ok() || read.status().sqlstate() == "XX001") << read.status().ToString();
  return read.ok() ? "" : std::string(read.status().message());
}

class StoredAttributes : public ::testing::Test {
 protected:
  StoredAttributes() { plan_.mutable_model()->set_type("xgboost.gbtree"); }
  plan::TrainPlan plan_;
};

TEST_F(StoredAttributes, AreInTheirTypesRange) {
  AddAttribute("eta", &plan_)->set_number(0.5);
  AddAttribute("max_depth", &plan_)->set_integer(6);
  AddAttribute("of a later version", &plan_)->set_integer(-6);
  EXPECT_EQ(Refusal(plan_), "");
  AddAttribute("colsample_bylevel", &plan_)->set_number(-1);  // libxgboost crashes
  EXPECT_THAT(Refusal(plan_),
              HasSubstr("attribute colsample_bylevel must be from 0.0001 to 1, not -1"));
}

TEST_F(StoredAttributes, HaveTheirType) {
  models::Attribute* const depth = AddAttribute("max_depth", &plan_);
  depth->set_text("deep");
  EXPECT_THAT(Refusal(plan_), HasSubstr("attribute max_depth must be an integer"));
  depth->set_number(2.5);
  EXPECT_THAT(Refusal(plan_), HasSubstr("attribute max_depth must be an integer"));
  depth->clear_value();
  EXPECT_NE(Refusal(plan_), "");
  depth->set_integer(3);
  EXPECT_EQ(Refusal(plan_), "");
  AddAttribute("objective", &plan_)->set_integer(3);
  EXPECT_THAT(Refusal(plan_), HasSubstr("attribute objective is no text"));
}

// A member of a blend is trained with them, too.
TEST_F(StoredAttributes, OfMembersAreChecked) {
  plan::TrainPlan blend;
  blend.mutable_model()->set_type("blend");
  AddAttribute("subsample", &plan_)->set_number(7);
  *blend.mutable_model()->add_members()->mutable_model() = plan_.model();
  EXPECT_THAT(Refusal(blend), HasSubstr("attribute subsample"));
}

}  // namespace
}  // namespace sluice::planner
