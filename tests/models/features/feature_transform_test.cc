#include "models/features/feature_transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/models/features/feature_plans.h"

namespace sluice::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

FeaturePlan NumberPlan() {
  FeaturePlan plan = PlanOf({"x"});
  Numeric(&plan);
  plan.mutable_label()->set_kind(LabelPlan::NUMBER);
  plan.mutable_label()->set_column("y");
  plan.mutable_label()->set_scale(1);
  return plan;
}

TEST(FeatureTransformTest, LaysFeaturesOutInOrder) {
  FeaturePlan plan = PlanOf({"a", "b", "c"});
  Feature* wide = Numeric(&plan, 0);
  wide->set_part(Feature::WIDE);
  wide->set_null_indicator(true);
  Feature* embedding = Category(&plan, Categorizer::HASH, 50);
  embedding->set_representation(Feature::EMBEDDING);
  embedding->set_dimension(8);
  embedding->set_combiner("mean");
  embedding->set_part(Feature::DEEP);
  Numeric(&plan, 2);
  const auto transform = Make(plan);
  ASSERT_EQ(transform->dense_columns().size(), 2U);
  EXPECT_EQ(transform->dense_columns()[1].feature, 2U);
  EXPECT_EQ(transform->dense_columns()[1].offset, 2U);
  EXPECT_TRUE(transform->dense_columns()[0].in_wide);
  EXPECT_FALSE(transform->dense_columns()[0].in_deep);
  ASSERT_EQ(transform->slots().size(), 1U);
  EXPECT_EQ(transform->slots()[0].dimension, 8U);
  EXPECT_TRUE(transform->slots()[0].embedding);
  EXPECT_FALSE(transform->slots()[0].in_wide);
  EXPECT_EQ(transform->dense_width(), 3U);
}

TEST(FeatureTransformTest, OutputIsOverwritten) {
  FeaturePlan plan = NumberPlan();
  const auto transform = Make(plan);
  FeatureBatch out;
  ASSERT_TRUE(transform->Apply(Batch({Doubles({1, 2}), Doubles({3, 4})}), true, &out).ok());
  ASSERT_TRUE(transform->Apply(Batch({Doubles({5})}), false, &out).ok());
  EXPECT_EQ(out.rows, 1U);
  EXPECT_THAT(out.dense, ElementsAre(5));
  EXPECT_THAT(out.labels, IsEmpty());
}

TEST(FeatureTransformTest, InconsistentPlansAreRefused) {
  FeaturePlan scale = PlanOf({"x"});
  Numeric(&scale)->set_scale(0);
  EXPECT_THAT(MakeStatus(scale).message(), HasSubstr("scale 0"));
  FeaturePlan input = PlanOf({"x"});
  Numeric(&input, 7);
  EXPECT_THAT(MakeStatus(input).message(), HasSubstr("input 7"));
  FeaturePlan none = PlanOf({"x"});
  Numeric(&none)->clear_inputs();
  EXPECT_FALSE(MakeStatus(none).ok());
  FeaturePlan width = PlanOf({"x"});
  Numeric(&width)->set_kind(Feature::TENSOR);
  EXPECT_THAT(MakeStatus(width).message(), HasSubstr("width 0"));
  FeaturePlan buckets = PlanOf({"x"});
  Category(&buckets, Categorizer::HASH, 0);
  EXPECT_FALSE(MakeStatus(buckets).ok());
  FeaturePlan twice = PlanOf({"x"});
  Feature* category = Category(&twice, Categorizer::VOCABULARY, 3);
  category->mutable_categorizer()->add_vocabulary("a");
  category->mutable_categorizer()->add_vocabulary("a");
  EXPECT_THAT(MakeStatus(twice).message(), HasSubstr("twice"));
  FeaturePlan outside = PlanOf({"x"});
  Category(&outside, Categorizer::HASH, 3)->mutable_categorizer()->set_null_bucket(3);
  EXPECT_THAT(MakeStatus(outside).message(), HasSubstr("bucket 3"));
  FeaturePlan boundaries = PlanOf({"x"});
  Categorizer* bucket = Category(&boundaries, Categorizer::BUCKET, 5)->mutable_categorizer();
  bucket->add_boundaries(2);
  bucket->add_boundaries(2);
  EXPECT_THAT(MakeStatus(boundaries).message(), HasSubstr("ascend"));
  FeaturePlan time = PlanOf({"x"});
  Category(&time, Categorizer::TIME_PART, 5)->mutable_categorizer()->set_time_part("era");
  EXPECT_THAT(MakeStatus(time).message(), HasSubstr("'era'"));
  FeaturePlan cross = PlanOf({"x"});
  Category(&cross, Categorizer::CROSS, 5);
  EXPECT_THAT(MakeStatus(cross).message(), HasSubstr("cross of 1 columns"));
  FeaturePlan label = PlanOf({"x"});
  label.mutable_label()->set_kind(LabelPlan::CLASS);
  EXPECT_THAT(MakeStatus(label).message(), HasSubstr("0 classes"));
}

}  // namespace
}  // namespace sluice::models
