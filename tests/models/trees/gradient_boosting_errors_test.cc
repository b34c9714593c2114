#include <gtest/gtest.h>

#include <string>

#include "tests/models/trees/boosting.h"

namespace sluice::models {
namespace {

TEST(BoostingErrorTest, ReaderErrorsComeThroughUnchanged) {
  const auto trees = MakeTrees(ClassTrees("xgboost.gbtree"));
  const FeatureBatch batch = ClassRows(100, 1);
  for (const int failing_call : {1, 2, 4, 6}) {  // in the first pass and in later ones
    Batches batches({batch, batch});
    const GradientBoosting::BatchSource good = batches.Source();
    int calls = 0;
    const auto next = [&]() -> Result<const FeatureBatch*> {
      if (++calls == failing_call) {
        return Unavailable("the database went away");
      }
      return good.next();
    };
    const Status status = trees->Train({next, good.rewind, 0}, {}, nullptr, {});
    EXPECT_EQ(status.message(), "the database went away") << failing_call;
    EXPECT_EQ(status.code(), Code::kUnavailable);
  }
}

TEST(BoostingErrorTest, NoRows) {
  const auto trees = MakeTrees(ClassTrees("xgboost.gbtree"));
  Batches train({});
  EXPECT_EQ(Train(trees.get(), &train).message(), "no rows to train on: the select is empty");
}

TEST(BoostingErrorTest, XgboostsOwnWordsWithoutItsStack) {
  ModelSpec spec = ClassTrees("xgboost.gbtree");
  SetText(&spec, "eval_metric", "nonsense");
  const auto trees = MakeTrees(spec);
  Batches train({ClassRows(100, 1)});
  const Status status = Train(trees.get(), &train);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "XGBoost, training: Unknown metric function nonsense");
}

TEST(BoostingErrorTest, EarlyStoppingNeedsValidationRows) {
  ModelSpec spec = ClassTrees("xgboost.gbtree");
  SetInteger(&spec, "train.early_stopping_rounds", 3);
  const auto trees = MakeTrees(spec);
  Batches train({ClassRows(100, 1)});
  EXPECT_EQ(Train(trees.get(), &train).message(),
            "train.early_stopping_rounds needs validation rows");
}

TEST(BoostingErrorTest, SeveralCategoriesInOneCell) {
  FeatureBatch batch = ClassRows(2, 1);
  batch.slots[0] = {{1, 2, 3}, {2, 3}, {}};
  const auto trees = MakeTrees(ClassTrees("xgboost.gbtree"));
  Batches train({batch});
  EXPECT_EQ(Train(trees.get(), &train).message(), "feature 'c' has 2 categories in one row");
}

TEST(BoostingErrorTest, DamagedBytes) {
  const auto trees = MakeTrees(ClassTrees("xgboost.gbtree"));
  Batches train({ClassRows(100, 1)});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  const std::string bytes = std::move(trees->Save()).value();
  const auto other = MakeTrees(ClassTrees("xgboost.gbtree"));
  EXPECT_FALSE(other->Load("").ok());
  EXPECT_FALSE(other->Load("nonsense").ok());
  for (size_t n = 0; n < bytes.size(); n += 97) {
    EXPECT_FALSE(other->Load(std::string_view(bytes).substr(0, n)).ok()) << n;
    std::string damaged = bytes;
    damaged[n] = static_cast<char>(damaged[n] ^ 4);
    EXPECT_FALSE(other->Load(damaged).ok()) << n;
  }
  ModelSpec wider = TreeSpec("xgboost.gbtree");
  AddNumber(&wider, "a");
  SetClasses(&wider, 2);
  EXPECT_EQ(MakeTrees(wider)->Load(bytes).message(),
            "the stored model is damaged: a tree has other columns than its plan");
}

TEST(BoostingErrorTest, ObjectiveAndLabelMustFit) {
  const auto message = [](const std::string& type, const std::string& objective, int classes) {
    ModelSpec spec = TreeSpec(type);
    AddNumber(&spec, "a");
    if (classes > 0) {
      SetClasses(&spec, classes);
    } else {
      SetNumberLabel(&spec, 0, 1);
    }
    if (!objective.empty()) {
      SetText(&spec, "objective", objective);
    }
    const auto made = GradientBoosting::Make(spec);
    EXPECT_FALSE(made.ok()) << type << objective;
    return made.ok() ? "" : made.status().message();
  };
  EXPECT_EQ(message("xgboost.gbtree", "binary:logistic", 3),
            "objective binary:logistic is for two classes, but label 'y' has 3");
  EXPECT_EQ(message("xgboost.gbtree", "multi:softmax", 0),
            "objective multi:softmax needs classes, but label 'y' holds numbers");
  EXPECT_EQ(message("XGBClassifier", "reg:squarederror", 2),
            "objective reg:squarederror is not one of a classifier");
  EXPECT_EQ(message("XGBRegressor", "binary:logistic", 2),
            "objective binary:logistic is not one of a regressor");
  EXPECT_EQ(message("XGBClassifier", "", 1),
            "label 'y' has 1 class: a classifier needs two or more");
  EXPECT_EQ(message("xgboost.catboost", "", 2), "no boosted model of type 'xgboost.catboost'");
}

}  // namespace
}  // namespace sluice::models
