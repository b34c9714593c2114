// In which units boosted trees learn numbers and labels, and in which they answer.
#include <gtest/gtest.h>

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/models/trees/boosting.h"

namespace sluice::models {
namespace {

// Rows whose label is 3 a, in a unit of which 1 is `unit` and from another zero.
FeatureBatch LineRows(const ModelSpec& spec, double unit, double zero) {
  const LabelPlan& label = spec.features().label();
  FeatureBatch batch;
  batch.rows = 500;
  batch.dense_width = 1;
  for (size_t r = 0; r < batch.rows; ++r) {
    const double a = static_cast<double>(r * 7919 % 500) / 50;
    batch.dense.push_back(static_cast<float>(a));
    const double number = 3 * a / unit + zero;
    batch.labels.push_back(static_cast<float>((number - label.mean()) / label.scale()));
    batch.label_numbers.push_back(number);
  }
  return batch;
}

TEST(GradientBoostingUnitsTest, SquaredErrorsDoNotDependOnTheLabelsUnit) {
  for (const char* type :
       {"xgboost.gbtree", "xgboost.dart", "xgboost.gblinear", "XGBRFRegressor"}) {
    std::vector<double> first;
    std::vector<double> first_errors;
    for (const auto& [unit, zero] :
         {std::pair(1.0, 0.0), std::pair(1e6, 0.0), std::pair(1e-30, 0.0), std::pair(1.0, 2000.0),
          std::pair(1.0, 1e9)}) {
      ModelSpec spec = TreeSpec(type, 10);
      AddNumber(&spec, "a");
      SetNumberLabel(&spec, 15 / unit + zero, 8.6 / unit);
      SetNumber(&spec, "reg_alpha", 0.5 / unit);
      if (std::string_view(type) != "xgboost.gblinear") {
        SetNumber(&spec, "gamma", 2 / unit / unit);
      }
      const auto trees = MakeTrees(spec);
      const FeatureBatch rows = LineRows(spec, unit, zero);
      Batches train({rows});
      std::vector<GradientBoosting::Round> rounds;
      ASSERT_TRUE(Train(trees.get(), &train, nullptr, &rounds).ok());
      std::vector<double> predictions;
      ASSERT_TRUE(trees->Predict(rows, &predictions).ok());
      for (double& one : predictions) {
        one = (one - zero) * unit;
      }
      const double error = rounds.back().metrics.at(0).second * unit;
      if (first.empty()) {
        first = predictions;
        first_errors = {error};
      }
      EXPECT_NEAR(error, first_errors[0], 1e-3) << type;
      for (size_t r = 0; r < rows.rows; ++r) {
        ASSERT_NEAR(predictions[r], first[r], 1e-3) << type << " in units of " << unit;
      }
    }
  }
}

TEST(GradientBoostingUnitsTest, ABaseScoreIsInTheLabelsUnit) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 1);
  AddNumber(&spec, "a");
  SetNumberLabel(&spec, 15, 8.6);
  SetNumber(&spec, "base_score", 7);
  SetNumber(&spec, "eta", 1e-6);  // so that next to nothing is added to it
  const auto trees = MakeTrees(spec);
  const FeatureBatch rows = LineRows(spec, 1, 0);
  Batches train({rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  std::vector<double> predictions;
  ASSERT_TRUE(trees->Predict(rows, &predictions).ok());
  EXPECT_NEAR(predictions[0], 7, 1e-3);

  // A training that goes on from the model keeps it.
  spec.mutable_attributes()->DeleteSubrange(spec.attributes_size() - 2, 1);
  ASSERT_EQ(spec.attributes(spec.attributes_size() - 1).name(), "eta");
  const auto further = MakeTrees(spec);
  ASSERT_TRUE(further->Load(trees->Save().value()).ok());
  Batches again({rows});
  ASSERT_TRUE(Train(further.get(), &again).ok());
  ASSERT_TRUE(further->Predict(rows, &predictions).ok());
  EXPECT_NEAR(predictions[0], 7, 1e-3);
}

// 32 bits would round all labels to 1e9.
TEST(GradientBoostingUnitsTest, DistancesAreLearntFromTheMean) {
  for (const char* objective : {"reg:absoluteerror", "reg:pseudohubererror"}) {
    ModelSpec spec = TreeSpec("xgboost.gbtree", 60);
    AddNumber(&spec, "a");
    SetNumberLabel(&spec, 15 + 1e9, 1);
    SetText(&spec, "objective", objective);
    const auto trees = MakeTrees(spec);
    const FeatureBatch rows = LineRows(spec, 1, 1e9);
    Batches train({rows});
    ASSERT_TRUE(Train(trees.get(), &train).ok());
    std::vector<double> predictions;
    ASSERT_TRUE(trees->Predict(rows, &predictions).ok());
    for (size_t r = 0; r < rows.rows; ++r) {
      ASSERT_NEAR(predictions[r], rows.label_numbers[r], 1) << objective;
    }
  }
}

TEST(GradientBoostingUnitsTest, OtherObjectivesLearnTheLabelItself) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 60);
  AddNumber(&spec, "a");
  SetNumberLabel(&spec, 15, 8.6);
  SetText(&spec, "objective", "count:poisson");
  const auto trees = MakeTrees(spec);
  const FeatureBatch rows = LineRows(spec, 1, 10);
  Batches train({rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  std::vector<double> predictions;
  ASSERT_TRUE(trees->Predict(rows, &predictions).ok());
  EXPECT_NEAR(predictions[0], 10, 1);
}

TEST(GradientBoostingUnitsTest, AMissingNumberIsFoundInACentredColumn) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 1);
  Feature* feature = AddNumber(&spec, "a");
  feature->set_centred(true);
  feature->set_offset(1e9);
  SetNumberLabel(&spec, 0, 1);
  SetNumber(&spec, "missing", -1);
  const auto trees = MakeTrees(spec);
  FeatureBatch rows;
  rows.rows = 400;
  rows.dense_width = 1;
  for (size_t r = 0; r < rows.rows; ++r) {
    rows.dense.push_back(r % 4 == 0 ? -1e9F - 1 : static_cast<float>(r % 4));
    rows.labels.push_back(r % 4 == 0 ? 10 : 0);
  }
  Batches train({rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  rows.dense[0] = NAN;  // missing, too
  std::vector<double> predictions;
  ASSERT_TRUE(trees->Predict(rows, &predictions).ok());
  EXPECT_EQ(predictions[0], predictions[4]);
  EXPECT_NE(predictions[0], predictions[1]);
}

}  // namespace
}  // namespace sluice::models
