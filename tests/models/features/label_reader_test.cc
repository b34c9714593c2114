#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/features/label_scale.h"
#include "tests/models/features/feature_plans.h"

namespace sluice::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Target = FeatureTransform::Target;

FeaturePlan LabelledPlan(LabelPlan::Kind kind) {
  FeaturePlan plan = PlanOf({"x"});
  Numeric(&plan);
  plan.mutable_label()->set_kind(kind);
  plan.mutable_label()->set_column("y");
  plan.mutable_label()->set_scale(1);
  return plan;
}
FeatureBatch Labelled(const FeaturePlan& plan, RowBatch::Column labels) {
  const size_t rows = labels.null.size();
  return Apply(plan,
               Batch({Doubles(std::vector<std::optional<double>>(rows, 1)), std::move(labels)}),
               Target::kNetwork, true);
}
std::vector<float> Labels(const FeaturePlan& plan, RowBatch::Column labels) {
  return Labelled(plan, std::move(labels)).labels;
}
Status LabelStatus(const FeaturePlan& plan, RowBatch::Column labels) {
  const size_t rows = labels.null.size();
  return ApplyStatus(
      plan, Batch({Doubles(std::vector<std::optional<double>>(rows, 1)), std::move(labels)}), true);
}

TEST(LabelTest, ClassesOfAnyType) {
  FeaturePlan plan = LabelledPlan(LabelPlan::CLASS);
  plan.mutable_label()->add_classes("<=50K");
  plan.mutable_label()->add_classes(">50K");
  EXPECT_THAT(Labels(plan, Texts({">50K", "<=50K"})), ElementsAre(1, 0));
  FeaturePlan numbers = LabelledPlan(LabelPlan::CLASS);
  numbers.mutable_label()->add_classes("0");
  numbers.mutable_label()->add_classes("1");
  EXPECT_THAT(Labels(numbers, Integers({1, 0})), ElementsAre(1, 0));
  EXPECT_THAT(Labels(numbers, Doubles({1, 0})), ElementsAre(1, 0));
  EXPECT_THAT(Labels(numbers, Texts({"1", "0"})), ElementsAre(1, 0));
}

TEST(LabelTest, WrongLabelsAreNamed) {
  FeaturePlan classes = LabelledPlan(LabelPlan::CLASS);
  classes.mutable_label()->add_classes("<=50K");
  classes.mutable_label()->add_classes(">50K");
  const Status unknown = LabelStatus(classes, Texts({"<=50K", ">50K."}));
  EXPECT_THAT(unknown.message(), HasSubstr("'>50K.'"));
  EXPECT_THAT(unknown.message(), HasSubstr("'<=50K', '>50K'"));
  EXPECT_THAT(unknown.diagnostics()[0].hint, HasSubstr("did you mean '>50K'"));
  const Status null = LabelStatus(classes, Texts({std::nullopt}));
  EXPECT_THAT(null.message(), HasSubstr("'y' is NULL"));
  EXPECT_THAT(null.diagnostics()[0].hint, HasSubstr("WHERE y IS NOT NULL"));

  const FeaturePlan numbers = LabelledPlan(LabelPlan::NUMBER);
  EXPECT_THAT(LabelStatus(numbers, Doubles({kNaN})).message(), HasSubstr("NaN"));
  EXPECT_THAT(LabelStatus(numbers, Doubles({kInfinity})).message(), HasSubstr("Infinity"));
  EXPECT_THAT(LabelStatus(numbers, Texts({"high"})).message(), HasSubstr("'high'"));
  EXPECT_THAT(LabelStatus(numbers, Doubles({std::nullopt})).message(), HasSubstr("NULL"));
  EXPECT_THAT(LabelStatus(numbers, Texts({""})).message(), HasSubstr("NULL"));
}

TEST(LabelTest, NumbersAreStandardisedAndVectorsRead) {
  FeaturePlan number = LabelledPlan(LabelPlan::NUMBER);
  number.mutable_label()->set_mean(10);
  number.mutable_label()->set_scale(4);
  EXPECT_THAT(Labels(number, Doubles({12, 6})), ElementsAre(0.5F, -1));
  FeaturePlan vector = LabelledPlan(LabelPlan::VECTOR);
  vector.mutable_label()->set_width(2);
  EXPECT_THAT(Labels(vector, Texts({"1,2", "3,4.5"})), ElementsAre(1, 2, 3, 4.5F));
  EXPECT_EQ(Make(vector)->label_width(), 2U);
  for (const auto& [mean, scale] : {std::pair(1.0, 2.0), {10.0, 0.5}}) {
    vector.mutable_label()->add_means(mean);
    vector.mutable_label()->add_scales(scale);
  }
  const FeatureBatch batch = Labelled(vector, Texts({"1,10", "5,10.5"}));
  EXPECT_THAT(batch.labels, ElementsAre(0, 0, 2, 1));
  EXPECT_THAT(batch.OwnLabels(), ElementsAre(1, 10, 5, 10.5));
  EXPECT_THAT(LabelStatus(vector, Texts({"1"})).message(), HasSubstr("expected 2 numbers"));
}

// 32 bits would round them to 1e9, or to 0 and infinity.
TEST(LabelTest, CloseNumbersAreToldApart) {
  FeaturePlan number = LabelledPlan(LabelPlan::NUMBER);
  number.mutable_label()->set_mean(1e9);
  number.mutable_label()->set_scale(0.25);
  const FeatureBatch batch = Labelled(number, Doubles({1e9, 1e9 + 0.125, 1e9 - 0.25}));
  EXPECT_THAT(batch.labels, ElementsAre(0, 0.5F, -1));
  EXPECT_THAT(batch.OwnLabels(), ElementsAre(1e9, 1e9 + 0.125, 1e9 - 0.25));
  EXPECT_THAT(Labelled(number, Integers({1000000001})).OwnLabels(), ElementsAre(1e9 + 1));
  for (const double unit : {1e300, 1e-300}) {
    number.mutable_label()->set_mean(unit);
    number.mutable_label()->set_scale(unit);
    const FeatureBatch far = Labelled(number, Doubles({3 * unit, 0}));
    EXPECT_NEAR(far.labels[0], 2, 1e-6);
    EXPECT_THAT(far.OwnLabels(), ElementsAre(3 * unit, 0));
  }
}

TEST(LabelTest, StoredScalesOfAnotherCountAreRefused) {
  FeaturePlan vector = LabelledPlan(LabelPlan::VECTOR);
  vector.mutable_label()->set_width(2);
  vector.mutable_label()->add_means(1);
  vector.mutable_label()->add_scales(1);
  EXPECT_THAT(LabelScales(vector.label()).status().message(),
              HasSubstr("1 means and 1 scales for 2 numbers"));
  vector.mutable_label()->add_means(1);
  vector.mutable_label()->add_scales(0);
  EXPECT_THAT(LabelScales(vector.label()).status().message(), HasSubstr("scale not 0"));
}

TEST(LabelTest, WeightsAndGroupsFollowTheLabel) {
  FeaturePlan plan = LabelledPlan(LabelPlan::NUMBER);
  plan.set_weight_column("w");
  plan.set_group_column("q");
  EXPECT_THAT(Make(plan)->ColumnNames(true), ElementsAre("x", "y", "w", "q"));
  EXPECT_THAT(Make(plan)->ColumnNames(false), ElementsAre("x"));
  const FeatureBatch out =
      Apply(plan, Batch({Doubles({1, 1}), Doubles({1, 2}), Doubles({0.5, 2}), Integers({7, 8})}),
            Target::kNetwork, true);
  EXPECT_THAT(out.weights, ElementsAre(0.5F, 2));
  EXPECT_THAT(out.groups, ElementsAre(7, 8));
  for (const double weight : {-1.0, kNaN, kInfinity, 1e39, 1e-50}) {
    EXPECT_THAT(
        ApplyStatus(plan, Batch({Doubles({1}), Doubles({1}), Doubles({weight}), Integers({7})}),
                    true)
            .message(),
        HasSubstr("'w'"));
  }
}

}  // namespace
}  // namespace sluice::models
