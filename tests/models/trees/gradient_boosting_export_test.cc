// XGBoost's own JSON form of a model, read back by libxgboost itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/trees/xgboost_library_internal.h"
#include "tests/models/trees/boosting.h"

namespace sluice::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What XGBoost predicts for rows x columns numbers.
std::vector<double> XgboostPredicts(const std::string& json, const std::vector<float>& numbers,
                                    size_t rows) {
  EXPECT_TRUE(LoadXgboost().ok());
  BoosterHandle booster = nullptr;
  EXPECT_EQ(Xgboost().XGBoosterCreate(nullptr, 0, &booster), 0);
  EXPECT_EQ(Xgboost().XGBoosterLoadModelFromBuffer(booster, json.data(), json.size()), 0)
      << Xgboost().XGBGetLastError();
  DMatrixHandle matrix = nullptr;
  const std::string array =
      "{\"data\":[" + std::to_string(reinterpret_cast<uintptr_t>(numbers.data())) +
      ",true],\"shape\":[" + std::to_string(rows) + "," + std::to_string(numbers.size() / rows) +
      "],\"typestr\":\"<f4\",\"version\":3}";
  EXPECT_EQ(
      Xgboost().XGDMatrixCreateFromDense(array.c_str(), R"({"missing":NaN,"nthread":1})", &matrix),
      0);
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* scores = nullptr;
  EXPECT_EQ(
      Xgboost().XGBoosterPredictFromDMatrix(
          booster, matrix,
          R"({"type":0,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":true})",
          &shape, &dimensions, &scores),
      0);
  std::vector<double> predictions(scores, scores + rows);
  Xgboost().XGDMatrixFree(matrix);
  Xgboost().XGBoosterFree(booster);
  return predictions;
}

TEST(GradientBoostingExportTest, XgboostReadsColumnsAndLabelInTheirOwnUnits) {
  for (const char* type : {"xgboost.gbtree", "xgboost.dart", "xgboost.gblinear"}) {
    ModelSpec spec = TreeSpec(type, 10);
    AddNumber(&spec, "a");
    Feature* centred = AddNumber(&spec, "b");
    centred->set_centred(true);
    centred->set_offset(1000);
    centred->set_scale(0.25);
    SetNumberLabel(&spec, 2000.123456789, 8);  // more digits than XGBoost reads
    FeatureBatch rows;
    std::vector<float> own;
    rows.rows = 400;
    rows.dense_width = 2;
    for (size_t r = 0; r < rows.rows; ++r) {
      const auto a = static_cast<float>(r % 20);
      const auto b = static_cast<float>(r * 7919 % 37);
      rows.dense.insert(rows.dense.end(), {a, (b - 18) / 4});
      own.insert(own.end(), {a, 982 + b});
      rows.labels.push_back((a + 0.5F * b - 20) / 8);
    }
    const auto trees = MakeTrees(spec);
    Batches train({rows});
    ASSERT_TRUE(Train(trees.get(), &train).ok());
    std::vector<double> predictions;
    ASSERT_TRUE(trees->Predict(rows, &predictions).ok());
    const auto exported = trees->Export(spec);
    ASSERT_TRUE(exported.ok()) << exported.status().ToString();
    const std::vector<double> theirs = XgboostPredicts(exported->json, own, rows.rows);
    for (size_t r = 0; r < rows.rows; ++r) {
      ASSERT_NEAR(theirs[r], predictions[r], 0.01) << type << " row " << r;
    }
    EXPECT_THAT(exported->notes, ElementsAre(HasSubstr("b: XGBoost compares 32-bit numbers")));
    EXPECT_THAT(exported->json, HasSubstr(R"({\"first\":1,\"count\":1,\"feature\":\"b\")"));
  }
}

TEST(GradientBoostingExportTest, LabelsThatXgboostDoesNotTellApartAreNoted) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 1);
  AddNumber(&spec, "a");
  SetNumberLabel(&spec, 1e9, 0.25);
  FeatureBatch rows;
  rows.rows = 4;
  rows.dense_width = 1;
  rows.dense = {1, 2, 3, 4};
  rows.labels = {-1, 0, 0, 1};
  const auto trees = MakeTrees(spec);
  Batches train({rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  EXPECT_THAT(trees->Export(spec).value().notes, ElementsAre(HasSubstr("1.2e+02 apart")));
}

TEST(GradientBoostingExportTest, LabelsBeyondFloatsAreRefused) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 1);
  AddNumber(&spec, "a");
  SetNumberLabel(&spec, 1e300, 1e299);
  FeatureBatch rows;
  rows.rows = 2;
  rows.dense_width = 1;
  rows.dense = {1, 2};
  rows.labels = {-1, 1};
  const auto trees = MakeTrees(spec);
  Batches train({rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  EXPECT_THAT(trees->Export(spec).status().message(), HasSubstr("end at 3.4e+38"));
}

TEST(GradientBoostingExportTest, ClassesAndCategoriesAreDescribed) {
  ModelSpec spec = ClassTrees("xgboost.gbtree");
  spec.mutable_features()->mutable_features(2)->mutable_categorizer()->add_vocabulary("red");
  const auto trees = MakeTrees(ClassTrees("xgboost.gbtree"));
  const FeatureBatch rows = ClassRows(500, 1);
  Batches train({rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  std::vector<double> predictions;
  ASSERT_TRUE(trees->Predict(rows, &predictions).ok());
  const auto exported = trees->Export(spec);
  ASSERT_TRUE(exported.ok()) << exported.status().ToString();
  std::vector<float> own;
  for (size_t r = 0; r < rows.rows; ++r) {
    own.insert(own.end(), {rows.dense[2 * r], rows.dense[2 * r + 1],
                           static_cast<float>(rows.slots[0].ids[r])});
  }
  EXPECT_EQ(XgboostPredicts(exported->json, own, rows.rows), predictions);
  EXPECT_THAT(exported->notes, ElementsAre(HasSubstr("lists them (c)")));
  EXPECT_THAT(exported->json, HasSubstr(R"(\"values\":[\"red\"])"));
}

}  // namespace
}  // namespace sluice::models
