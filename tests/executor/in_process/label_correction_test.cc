#include "executor/in_process/label_correction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// Labels around 100, 200, ... whose logarithms (or roots) are `spread` above or below those of the
// predictions, all times `level`.
struct Judged {
  std::vector<double> predictions, labels;
  std::vector<float> weights;
};
Judged Around(models::LabelPlan::Curve curve, double spread, double level) {
  Judged judged;
  for (int i = 0; i < 400; ++i) {
    const double prediction = 100.0 * (1 + i / 4 % 10);
    const double off = i / 2 % 2 == 0 ? spread : -spread;
    judged.predictions.push_back(prediction);
    judged.labels.push_back(level * (curve == models::LabelPlan::ROOT
                                         ? std::pow(std::sqrt(prediction) + off, 2)
                                         : std::expm1(std::log1p(prediction) + off)));
    judged.weights.push_back(i % 4 < 2 ? 1.0F : 3.0F);
  }
  return judged;
}
double Correction(models::LabelPlan::Curve curve, const Judged& judged, bool weighted = false,
                  plan::Split::Kind split = plan::Split::TIME) {
  plan::TrainPlan plan;
  plan.mutable_model()->mutable_features()->mutable_label()->set_curve(curve);
  plan.mutable_split()->set_kind(split);
  return FindCorrection(plan, judged.predictions, judged.labels,
                        weighted ? judged.weights : std::vector<float>());
}

TEST(LabelCorrection, TurnsMediansIntoMeans) {
  const Judged logarithms = Around(models::LabelPlan::LOGARITHM, 0.5, 1);
  EXPECT_NEAR(Correction(models::LabelPlan::LOGARITHM, logarithms), std::cosh(0.5), 0.005);
  const Judged roots = Around(models::LabelPlan::ROOT, 4, 1);
  // Means are 16 above the predictions: sum(p * (p + 16)) / sum(p * p) for p = 100, 200, ... 1000.
  EXPECT_NEAR(Correction(models::LabelPlan::ROOT, roots), 1 + 16 * 5'500.0 / 3'850'000, 1e-3);
}

// Rows of which only every second pair, which agrees with its predictions, weighs something.
TEST(LabelCorrection, CountsWeights) {
  Judged judged = Around(models::LabelPlan::LOGARITHM, 0.5, 1);
  for (size_t i = 0; i < judged.labels.size(); ++i) {
    const bool agrees = i / 8 % 2 == 0;
    judged.labels[i] = agrees ? judged.predictions[i] : judged.labels[i];
    judged.weights[i] = agrees ? 1 : 0;
  }
  EXPECT_LT(Correction(models::LabelPlan::LOGARITHM, judged, true), 1.02);
  EXPECT_GT(Correction(models::LabelPlan::LOGARITHM, judged), 1.05);
}

TEST(LabelCorrection, IsNoLevelOfTheJudgedRows) {
  for (const auto& [curve, spread] :
       {std::pair(models::LabelPlan::LOGARITHM, 0.5), std::pair(models::LabelPlan::ROOT, 4.0)}) {
    const double at_rest = Correction(curve, Around(curve, spread, 1));
    for (const double level : {2.0, 10.0}) {
      EXPECT_NEAR(Correction(curve, Around(curve, spread, level)), at_rest, 0.01) << level;
    }
    Judged half = Around(curve, spread, 1);
    const Judged doubled = Around(curve, spread, 2);
    std::copy(doubled.labels.begin() + 200, doubled.labels.end(), half.labels.begin() + 200);
    EXPECT_NEAR(Correction(curve, half), at_rest, 0.02);
  }
}

// Then a level that predictions miss is one of all rows.
TEST(LabelCorrection, IsTheLeastSquaresOfRowsDrawnFromAll) {
  const Judged judged = Around(models::LabelPlan::LOGARITHM, 0.5, 1.5);
  for (const plan::Split::Kind split :
       {plan::Split::RANDOM, plan::Split::HASH, plan::Split::NONE}) {
    EXPECT_NEAR(Correction(models::LabelPlan::LOGARITHM, judged, false, split),
                1.5 * std::cosh(0.5), 0.01);
  }
  for (const plan::Split::Kind split :
       {plan::Split::TIME, plan::Split::COLUMN, plan::Split::SELECT}) {
    EXPECT_LT(Correction(models::LabelPlan::LOGARITHM, judged, false, split), 1.2);
  }
}

TEST(LabelCorrection, OfFewRowsIsNone) {
  Judged few = Around(models::LabelPlan::LOGARITHM, 0.5, 1);
  few.predictions.resize(29);
  few.labels.resize(29);
  EXPECT_EQ(Correction(models::LabelPlan::LOGARITHM, few), 1);
}

}  // namespace
}  // namespace sluice::executor
