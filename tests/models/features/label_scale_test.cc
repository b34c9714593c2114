#include "models/features/label_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

LabelPlan OnCurve(LabelPlan::Curve curve) {
  LabelPlan label;
  label.set_kind(LabelPlan::NUMBER);
  label.set_column("price");
  label.set_mean(2);
  label.set_scale(0.5);
  label.set_curve(curve);
  return label;
}

TEST(LabelScale, IsTakenBackFromEveryCurve) {
  for (const auto curve : {LabelPlan::STRAIGHT, LabelPlan::ROOT, LabelPlan::LOGARITHM}) {
    const auto scales = LabelScales(OnCurve(curve));
    ASSERT_TRUE(scales.ok());
    for (const double number : {-250.0, -0.25, 0.0, 1e-3, 1.0, 4.0, 18'823.0}) {
      EXPECT_NEAR(scales->front().Restored(scales->front().Transformed(number)), number,
                  1e-9 * std::fabs(number) + 1e-12);
    }
  }
  EXPECT_NEAR(LabelScales(OnCurve(LabelPlan::ROOT))->front().Transformed(9), (3 - 2) / 0.5, 1e-12);
}

TEST(LabelScale, WhichMetricsAreInTheLabelsUnit) {
  EXPECT_TRUE(ScaleWithLabel(""));
  EXPECT_TRUE(ScaleWithLabel("rmse"));
  EXPECT_TRUE(ScaleWithLabel("rmse, mae"));
  EXPECT_FALSE(ScaleWithLabel("rmse,rmsle"));
  EXPECT_FALSE(ScaleWithLabel("mape"));
}

TEST(LabelScale, WhatDependsOnDistancesOnly) {
  EXPECT_TRUE(LearnsDistances("reg:squarederror"));
  EXPECT_TRUE(LearnsDistances("reg:pseudohubererror"));
  EXPECT_FALSE(LearnsDistances("count:poisson"));
  EXPECT_TRUE(MeasureDistances("rmse,mphe"));
  EXPECT_FALSE(MeasureDistances("rmse, mape"));
}

TEST(LabelScale, CorrectsPredictions) {
  LabelPlan label = OnCurve(LabelPlan::LOGARITHM);
  label.set_correction(1.5);
  const LabelScale scale = LabelScales(label)->front();
  EXPECT_NEAR(scale.Predicted(scale.Transformed(10)), 15, 1e-9);
  EXPECT_NEAR(scale.Restored(scale.Transformed(10)), 10, 1e-9);
}

TEST(LabelScale, OfADivergedModelIsFinite) {
  LabelScale scale = LabelScales(OnCurve(LabelPlan::LOGARITHM))->front();
  EXPECT_TRUE(std::isfinite(static_cast<float>(scale.Predicted(1e30))));
  scale.mean = 600;
  EXPECT_TRUE(std::isfinite(scale.Predicted(1e30)));
  EXPECT_NEAR(scale.Restored(scale.Transformed(1e250)), 1e250, 1e240);
}

TEST(LabelScale, RefusesWhatNoTrainingWrites) {
  LabelPlan label = OnCurve(LabelPlan::ROOT);
  for (const double correction : {-1.0, 1e9, std::numeric_limits<double>::quiet_NaN()}) {
    label.set_correction(correction);
    EXPECT_FALSE(LabelScales(label).ok()) << correction;
  }
  label.set_correction(0);
  label.set_curve(static_cast<LabelPlan::Curve>(7));
  EXPECT_FALSE(LabelScales(label).ok());
}

}  // namespace
}  // namespace sluice::models
