#include "elastic/master/validation_result.h"

#include <gtest/gtest.h>

namespace sluice::elastic {
namespace {

TEST(ValidationResult, RowsThatChangeEndTheComparison) {
  ValidationResult result;
  ASSERT_TRUE(result.Set({{"auc", 0.8}}, 100, 7).ok());
  ASSERT_TRUE(result.Set({{"auc", 0.9}}, 100, 7).ok());
  EXPECT_EQ(result.metrics().front().second, 0.9);
  EXPECT_EQ(result.rows(), 100);
  const Status changed = result.Set({{"auc", 0.7}}, 100, 8);
  EXPECT_EQ(changed.code(), Code::kAborted);
  EXPECT_EQ(changed.sqlstate(), "40001");
  EXPECT_EQ(result.checksum(), 7U);
}

TEST(ValidationResult, AnUnknownChecksumIsComparedWithNothing) {
  ValidationResult result;
  ASSERT_TRUE(result.Set({}, 10, 0).ok());
  ASSERT_TRUE(result.Set({}, 10, 5).ok());
  EXPECT_TRUE(result.Set({}, 10, 0).ok());
}

TEST(ValidationResult, ARestoredOneKnowsItsRows) {
  ValidationResult result;
  result.Restore({{"auc", 0.8}}, 100, 7);
  EXPECT_EQ(result.metrics().front().first, "auc");
  EXPECT_FALSE(result.Set({}, 100, 8).ok());
}

TEST(ValidationResult, ATrainingThatBeginsAgainHasTheSameRows) {
  ValidationResult result;
  ASSERT_TRUE(result.Set({{"auc", 0.8}}, 100, 7).ok());
  result.ForgetMetrics();
  EXPECT_TRUE(result.metrics().empty());
  EXPECT_FALSE(result.Set({}, 100, 8).ok());
}

}  // namespace
}  // namespace sluice::elastic
