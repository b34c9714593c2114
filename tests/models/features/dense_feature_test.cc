#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/models/features/feature_plans.h"

namespace sluice::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Target = FeatureTransform::Target;

TEST(NumericTest, StandardisesAndMarksMissing) {
  FeaturePlan plan = PlanOf({"x"});
  Feature* feature = Numeric(&plan);
  feature->set_offset(10);
  feature->set_scale(0.5);
  const RowBatch batch = Batch({Doubles({12, std::nullopt, kNaN, kInfinity, -kInfinity})});
  EXPECT_THAT(Apply(plan, batch).dense, ElementsAre(1, 0, 0, 0, 0));
  feature->set_null_indicator(true);
  EXPECT_THAT(Apply(plan, batch).dense, ElementsAre(1, 0, 0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_EQ(Make(plan)->dense_columns().at(0).width, 2U);
}

TEST(NumericTest, EveryNumericTypeAndNumbersInTexts) {
  FeaturePlan plan = PlanOf({"x"});
  Numeric(&plan);
  EXPECT_THAT(Apply(plan, Batch({Integers({3, std::nullopt})})).dense, ElementsAre(3, 0));
  EXPECT_THAT(Apply(plan, Batch({Integers({1, 0}, DataType::kBool)})).dense, ElementsAre(1, 0));
  EXPECT_THAT(Apply(plan, Batch({Texts({" 2.5", "-7", "", "NaN", std::nullopt})})).dense,
              ElementsAre(2.5F, -7, 0, 0, 0));
}

TEST(NumericTest, WordsForNoneAreMissing) {
  FeaturePlan plan = PlanOf({"x"});
  Numeric(&plan)->set_null_indicator(true);
  EXPECT_THAT(Apply(plan, Batch({Texts({"5", "N/A", "null", " - ", "unknown"})})).dense,
              ElementsAre(5, 0, 0, 1, 0, 1, 0, 1, 0, 1));
}

TEST(NumericTest, LogarithmKeepsTheSign) {
  FeaturePlan plan = PlanOf({"x"});
  Numeric(&plan)->set_logarithm(true);
  const FeatureBatch out = Apply(plan, Batch({Doubles({0, std::exp(1.0) - 1, 1 - std::exp(1.0)})}));
  EXPECT_FLOAT_EQ(out.dense[0], 0);
  EXPECT_FLOAT_EQ(out.dense[1], 1);
  EXPECT_FLOAT_EQ(out.dense[2], -1);
}

TEST(NumericTest, TreesGetRawNumbersAndNaN) {
  FeaturePlan plan = PlanOf({"x"});
  Feature* feature = Numeric(&plan);
  feature->set_offset(10);
  feature->set_scale(0.5);
  feature->set_null_indicator(true);
  const FeatureBatch out =
      Apply(plan, Batch({Doubles({12, std::nullopt, kInfinity, 1e300})}), Target::kTrees);
  ASSERT_EQ(out.dense.size(), 4U);
  EXPECT_EQ(out.dense[0], 12);
  EXPECT_TRUE(std::isnan(out.dense[1]));
  EXPECT_TRUE(std::isnan(out.dense[2]));
  EXPECT_TRUE(std::isfinite(out.dense[3]));
}

TEST(NumericTest, TreesGetTheDistanceFromACentreExactly) {
  FeaturePlan plan = PlanOf({"x"});
  Feature* feature = Numeric(&plan);
  feature->set_centred(true);
  constexpr int64_t kId = 9'007'199'254'740'992;
  feature->set_offset(static_cast<double>(kId));
  EXPECT_THAT(
      Apply(plan, Batch({Integers({kId - 1, kId, kId + 1, kId + 3})}), Target::kTrees).dense,
      ElementsAre(-1, 0, 1, 3));
  EXPECT_THAT(
      Apply(plan, Batch({Texts({"9007199254740993", " 9007199254740991", "9007199254740994.0"})}),
            Target::kTrees)
          .dense,
      ElementsAre(1, -1, 2));
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  feature->set_offset(-0x1p62);
  EXPECT_THAT(Apply(plan, Batch({Integers({kLargest, -kLargest - 1})}), Target::kTrees).dense,
              ElementsAre(0x1.8p63F, -0x1p62F));
  feature->set_offset(1e9);
  feature->set_scale(0.5);
  const FeatureBatch out =
      Apply(plan, Batch({Doubles({1e9 + 1, 1e9, std::nullopt, kNaN})}), Target::kTrees);
  EXPECT_EQ(out.dense[0], 0.5F);
  EXPECT_EQ(out.dense[1], 0);
  EXPECT_TRUE(std::isnan(out.dense[2]));
  EXPECT_TRUE(std::isnan(out.dense[3]));
  feature->set_scale(0);
  EXPECT_FALSE(FeatureTransform::Make(plan, Target::kTrees).ok());
}

TEST(NumericTest, ATrendIsContinuedOnlyToItsBounds) {
  FeaturePlan plan = PlanOf({"x"});
  Feature* feature = Numeric(&plan);
  feature->set_time_part("days");
  feature->set_offset(10);
  feature->set_scale(0.5);
  feature->set_lowest(8);
  feature->set_highest(20);
  plan.mutable_inputs(0)->set_type(static_cast<int>(DataType::kTimestamp));
  constexpr int64_t kDay = 86'400'000'000;
  const auto batch = Batch({Integers({12 * kDay, 0, 400 * kDay}, DataType::kTimestamp)});
  EXPECT_THAT(Apply(plan, batch).dense, ElementsAre(1, -1, 5));
  feature->set_lowest(21);
  EXPECT_THAT(MakeStatus(plan).message(), HasSubstr("between 21 and 20"));
}

TEST(NumericTest, TextIsAnErrorThatNamesColumnAndValue) {
  FeaturePlan plan = PlanOf({"age"});
  Numeric(&plan);
  const Status status = ApplyStatus(plan, Batch({Texts({"1", "old"})}));
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("'age'"));
  EXPECT_THAT(status.message(), HasSubstr("'old'"));
  EXPECT_THAT(status.diagnostics()[0].detail, HasSubstr("WHERE age = 'old'"));
  EXPECT_THAT(status.diagnostics()[0].hint, HasSubstr("CATEGORY_HASH"));
}

TEST(NumericTest, TextsOfTimestampColumnsAreTimes) {
  FeaturePlan plan = PlanOf({"at"});
  Numeric(&plan)->set_scale(1e-6);
  plan.mutable_inputs(0)->set_type(static_cast<int>(DataType::kTimestamp));
  EXPECT_THAT(Apply(plan, Batch({Texts({"1970-01-01 00:01:00"})})).dense, ElementsAre(60));
}

TEST(TensorTest, CsvToFloats) {
  FeaturePlan plan = PlanOf({"c3", "n"});
  Feature* feature = Numeric(&plan);
  feature->set_kind(Feature::TENSOR);
  feature->mutable_format()->set_kind(TensorFormat::CSV);
  feature->set_width(3);
  Numeric(&plan, 1);
  const FeatureBatch out = Apply(
      plan, Batch({Texts({"1,2,3", std::nullopt, " 4, 5.5 ,6,", ""}), Doubles({7, 8, 9, 10})}));
  EXPECT_EQ(out.dense_width, 4U);
  EXPECT_THAT(out.dense, ElementsAre(1, 2, 3, 7, 0, 0, 0, 8, 4, 5.5F, 6, 9, 0, 0, 0, 10));
  const Status shorter = ApplyStatus(plan, Batch({Texts({"1,2"}), Doubles({1})}));
  EXPECT_THAT(shorter.message(),
              HasSubstr("csv format dense tensor of 3 element(s), but got 2 element(s)"));
  EXPECT_THAT(shorter.message(), HasSubstr("'c3'"));
  EXPECT_THAT(ApplyStatus(plan, Batch({Texts({"1,x,3"}), Doubles({1})})).message(),
              HasSubstr("found 'x'"));
}

TEST(TensorTest, KeyValueAndIndicesToFloats) {
  FeaturePlan plan = PlanOf({"c1"});
  Feature* feature = Numeric(&plan);
  feature->set_kind(Feature::TENSOR);
  feature->mutable_format()->set_kind(TensorFormat::KEY_VALUE);
  feature->mutable_format()->set_key_value_delimiter(":");
  feature->set_width(4);
  const RowBatch batch = Batch({Texts({"1:0.5 3:2\t", "0:-1"})});
  EXPECT_THAT(Apply(plan, batch).dense, ElementsAre(0, 0.5F, 0, 2, -1, 0, 0, 0));
  const FeatureBatch trees = Apply(plan, batch, Target::kTrees);
  EXPECT_TRUE(std::isnan(trees.dense[0]));
  EXPECT_EQ(trees.dense[3], 2);
  const Status large = ApplyStatus(plan, Batch({Texts({"4:1"})}));
  EXPECT_THAT(large.message(), HasSubstr("index 4 does not fit into 4 elements"));
  EXPECT_THAT(large.diagnostics()[0].hint, HasSubstr("SPARSE(c1, 5)"));
  EXPECT_FALSE(ApplyStatus(plan, Batch({Texts({"1:x"})})).ok());
  EXPECT_FALSE(ApplyStatus(plan, Batch({Texts({"-1:2"})})).ok());

  feature->mutable_format()->set_kind(TensorFormat::CSV);
  feature->mutable_format()->set_sparse(true);
  EXPECT_THAT(Apply(plan, Batch({Texts({"0,2", ""})})).dense, ElementsAre(1, 0, 1, 0, 0, 0, 0, 0));
}

}  // namespace
}  // namespace sluice::models
