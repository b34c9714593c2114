#include "models/trees/histogram/learner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "models/trees/xgboost_library_internal.h"
#include "tests/models/trees/boosting.h"

namespace sluice::models::histogram {
namespace {

ModelSpec NumberTrees(const std::string& objective, int rounds = 10) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", rounds);
  AddNumber(&spec, "a");
  AddNumber(&spec, "b");
  AddCategory(&spec, "c", 4, 0);
  SetNumberLabel(&spec, 0, 1);
  SetText(&spec, "objective", objective);
  return spec;
}

// Labels between 0 and 1, a few of them.
FeatureBatch NumberRows(size_t rows, uint32_t seed) {
  FeatureBatch batch = ClassRows(rows, seed, 6);
  for (float& label : batch.labels) {
    label = label / 8 + 0.125F;
  }
  return batch;
}

std::string BytesOf(const ModelSpec& spec, const std::vector<FeatureBatch>& batches) {
  const auto trees = MakeTrees(spec);
  Batches train(batches);
  const Status status = Train(trees.get(), &train);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return status.ok() ? trees->Save().value() : "";
}

TEST(HistogramLearnerTest, OneModelForAnyThreadsAndBatches) {
  const FeatureBatch rows = ClassRows(30'000, 1, 3);
  for (const char* type : {"xgboost.gbtree", "XGBRFClassifier"}) {
    ModelSpec spec = ClassTrees(type, 8, 3);
    SetNumber(&spec, "subsample", 0.7);
    const std::string one = BytesOf(spec, {rows});
    for (const int threads : {2, 3}) {
      SetInteger(&spec, "nthread", threads);
      EXPECT_EQ(BytesOf(spec, {rows}), one) << type << threads;
      EXPECT_EQ(
          BytesOf(spec, {rows.Slice(0, 7), rows.Slice(7, 12'000), rows.Slice(12'000, 30'000)}), one)
          << type << threads;
    }
  }
}

TEST(HistogramLearnerTest, OfExactSumsTheFirstTreeIsThatOfXgboostsExactMethod) {
  // Labels are multiples of 2^-6, so that XGBoost's sums are exact, too.
  FeatureBatch rows = ClassRows(2'000, 3, 6);
  rows.slots.clear();
  for (size_t r = 0; r < rows.rows; ++r) {
    rows.labels[r] += static_cast<float>(r % 32) / 64;
    rows.dense[2 * r] = std::round(rows.dense[2 * r] * 20);  // fewer numbers than bins
    rows.dense[2 * r + 1] = std::round(rows.dense[2 * r + 1] * 20);
  }
  std::vector<double> predictions[2];
  for (const int exact : {0, 1}) {
    ModelSpec spec = TreeSpec("xgboost.gbtree", 1);
    AddNumber(&spec, "a");
    AddNumber(&spec, "b");
    SetNumberLabel(&spec, 0, 1);
    SetNumber(&spec, "base_score", 0);
    SetText(&spec, "tree_method", exact == 1 ? "exact" : "hist");
    const auto trees = MakeTrees(spec);
    Batches train({rows});
    ASSERT_TRUE(models::Train(trees.get(), &train).ok());
    ASSERT_TRUE(trees->Predict(rows, &predictions[exact]).ok());
  }
  for (size_t r = 0; r < rows.rows; ++r) {
    ASSERT_NEAR(predictions[0][r], predictions[1][r], 1e-6) << r;
  }
}

struct Problem {
  std::string objective;
  int classes;
};
class MarginTest : public testing::TestWithParam<Problem> {};

// The margins that libxgboost computes from a stored model are those that the next tree would have
// been grown from, bit for bit.
TEST_P(MarginTest, TrainingsAreLibxgboosts) {
  const Problem& problem = GetParam();
  ModelSpec spec = problem.classes > 0 ? ClassTrees("xgboost.gbtree", 12, problem.classes)
                                       : NumberTrees(problem.objective, 12);
  if (problem.classes > 0) {
    SetText(&spec, "objective", problem.objective);
  }
  SetNumber(&spec, "subsample", 0.8);
  const FeatureBatch rows =
      problem.classes > 0 ? ClassRows(3'000, 4, problem.classes) : NumberRows(3'000, 4);
  ASSERT_TRUE(LoadXgboost().ok());
  const BoostingParameters parameters = ParametersOf(spec).value();
  ASSERT_TRUE(Learns(parameters));
  const auto transform =
      FeatureTransform::Make(spec.features(), FeatureTransform::Target::kTrees).value();
  const ColumnLayout layout = ColumnLayout::Make(spec, *transform, parameters).value();
  Batches batches({rows});
  const GradientBoosting::BatchSource source = batches.Source(), none;
  Training training;
  training.layout = &layout;
  training.parameters = &parameters;
  training.train = &source;
  training.validation = &none;
  const Result<Trained> trained = histogram::Train(training);
  ASSERT_TRUE(trained.ok()) << trained.status().ToString();
  ASSERT_TRUE(CheckBooster(trained->bytes, parameters, layout.columns()).ok());

  void* handle = nullptr;
  ASSERT_EQ(Xgboost().XGBoosterCreate(nullptr, 0, &handle), 0);
  const BoosterHolder booster(handle);
  ASSERT_EQ(
      Xgboost().XGBoosterLoadModelFromBuffer(handle, trained->bytes.data(), trained->bytes.size()),
      0);
  RowMatrix matrix(&layout);
  ASSERT_TRUE(matrix.Fill(rows).ok());
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* margins = nullptr;
  ASSERT_EQ(Xgboost().XGBoosterPredictFromDense(
                handle, matrix.DenseInterface().c_str(),
                R"({"type":1,"training":false,"iteration_begin":0,"iteration_end":0,)"
                R"("strict_shape":true,"missing":NaN,"cache_id":0})",
                nullptr, &shape, &dimensions, &margins),
            0);
  const std::vector<float> scored(margins, margins + trained->margins.size());
  EXPECT_EQ(scored, trained->margins);
}

INSTANTIATE_TEST_SUITE_P(
    All, MarginTest,
    testing::Values(Problem{"binary:logistic", 2}, Problem{"binary:logitraw", 2},
                    Problem{"binary:hinge", 2}, Problem{"multi:softprob", 3},
                    Problem{"reg:squarederror", 0}, Problem{"reg:logistic", 0},
                    Problem{"count:poisson", 0}, Problem{"reg:gamma", 0}, Problem{"reg:tweedie", 0},
                    Problem{"reg:pseudohubererror", 0}, Problem{"reg:squaredlogerror", 0}),
    [](const auto& test) {
      std::string name = test.param.objective;
      std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
      return name;
    });

Status TrainOn(const ModelSpec& spec, const FeatureBatch& rows,
               std::vector<double>* predictions = nullptr) {
  const auto trees = MakeTrees(spec);
  Batches train({rows});
  RETURN_IF_ERROR(Train(trees.get(), &train));
  std::vector<double> unused;
  return trees->Predict(rows, predictions != nullptr ? predictions : &unused);
}

TEST(HistogramLearnerTest, LabelsThatAnObjectiveCannotLearnAreErrors) {
  const auto message = [](const std::string& objective, float label) {
    FeatureBatch rows = NumberRows(50, 1);
    rows.labels[7] = label;
    return TrainOn(NumberTrees(objective), rows).message();
  };
  EXPECT_EQ(message("reg:logistic", 1.5F),
            "objective reg:logistic: label 'y' must lie between 0 and 1, and one is 1.5");
  EXPECT_EQ(message("count:poisson", -2),
            "objective count:poisson: label 'y' must be 0 or more, and one is -2");
  EXPECT_EQ(message("reg:gamma", 0),
            "objective reg:gamma: label 'y' must be above 0, and one is 0");
  EXPECT_EQ(message("reg:squaredlogerror", -1),
            "objective reg:squaredlogerror: label 'y' must be above -1, and one is -1");
  EXPECT_EQ(message("reg:squarederror", std::numeric_limits<float>::infinity()),
            "objective reg:squarederror: label 'y' must be within the range of floats, and one is "
            "Infinity");
  ModelSpec spec = ClassTrees("xgboost.gbtree");
  SetNumber(&spec, "base_score", 1);
  EXPECT_EQ(TrainOn(spec, ClassRows(50, 1)).message(),
            "objective binary:logistic cannot begin with base_score 1");
}

TEST(HistogramLearnerTest, RowsThatWeighNothingTeachNothing) {
  FeatureBatch rows = ClassRows(50, 1);
  rows.weights.assign(rows.rows, 0);
  EXPECT_EQ(TrainOn(ClassTrees("xgboost.gbtree"), rows).message(),
            "nothing can be learnt: every row weighs 0");
  rows.weights[3] = 1;
  EXPECT_TRUE(TrainOn(ClassTrees("xgboost.gbtree"), rows).ok());
}

TEST(HistogramLearnerTest, TheFirstTreeCorrectsTheBestConstant) {
  FeatureBatch rows = NumberRows(1'000, 2);
  double sum = 0;
  for (float& label : rows.labels) {
    label *= 1e-6F;
    sum += static_cast<double>(label);
  }
  for (const char* objective :
       {"count:poisson", "reg:gamma", "reg:tweedie", "reg:squaredlogerror"}) {
    ModelSpec spec = NumberTrees(objective, 1);
    SetNumber(&spec, "eta", 1e-9);
    std::vector<double> predictions;
    ASSERT_TRUE(TrainOn(spec, rows, &predictions).ok());
    EXPECT_NEAR(predictions[0] / (sum / 1'000), 1, 1e-4) << objective;
  }
}

TEST(HistogramLearnerTest, OddTables) {
  std::vector<double> predictions;
  FeatureBatch two = NumberRows(2, 1);
  two.labels = {1, 3};
  ASSERT_TRUE(TrainOn(NumberTrees("reg:squarederror"), two, &predictions).ok());
  EXPECT_NEAR(predictions[0] + predictions[1], 4, 1e-5);

  FeatureBatch constant = NumberRows(500, 1);
  constant.labels.assign(500, 0.75F);
  ASSERT_TRUE(TrainOn(NumberTrees("reg:squarederror"), constant, &predictions).ok());
  EXPECT_EQ(predictions[17], 0.75);

  FeatureBatch missing = NumberRows(500, 1);
  missing.dense.assign(1'000, NAN);
  missing.slots[0].ids.assign(500, 2);
  ASSERT_TRUE(TrainOn(NumberTrees("reg:squarederror"), missing, &predictions).ok());
  EXPECT_EQ(predictions[0], predictions[499]) << "nothing tells rows apart";
}

TEST(HistogramLearnerTest, ManyCategoriesAndWideBins) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 40);
  AddCategory(&spec, "c", 100'000, 0);
  SetClasses(&spec, 2);
  FeatureBatch rows;
  rows.rows = 100'000;
  rows.slots.resize(1);
  for (size_t r = 0; r < rows.rows; ++r) {
    rows.slots[0].ids.push_back(static_cast<uint32_t>(r * 7919 % 100'000));
    rows.labels.push_back(rows.slots[0].ids.back() / 1'000 % 2 == 0 ? 1 : 0);
  }
  const double few = [&] {
    const auto trees = MakeTrees(spec);
    Batches train({rows});
    EXPECT_TRUE(Train(trees.get(), &train).ok());
    return Accuracy(trees.get(), rows);
  }();
  SetInteger(&spec, "max_bin", 65'536);
  const auto trees = MakeTrees(spec);
  Batches train({rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  EXPECT_GT(Accuracy(trees.get(), rows), few) << "two bytes a number";
}

// Twenty categories, of which those that are multiples of three are of class 1; one in ten is NULL,
// of class 0.
FeatureBatch CategoryRows(bool with_null) {
  FeatureBatch rows;
  rows.rows = 4'000;
  rows.slots.resize(1);
  for (size_t r = 0; r < rows.rows; ++r) {
    const auto id = static_cast<uint32_t>(r * 7919 % 20);
    const bool null = with_null && r % 10 == 9;
    if (!null) {
      rows.slots[0].ids.push_back(id);
    }
    rows.slots[0].ends.push_back(static_cast<uint32_t>(rows.slots[0].ids.size()));
    rows.labels.push_back(!null && id % 3 == 0 ? 1 : 0);
  }
  return rows;
}

TEST(HistogramLearnerTest, OneSplitPartsCategoriesByWhatTheyAre) {
  for (const bool with_null : {true, false}) {
    ModelSpec spec = TreeSpec("xgboost.gbtree", 20);
    AddCategory(&spec, "c", 40, 0);
    SetClasses(&spec, 2);
    SetInteger(&spec, "max_depth", 1);
    const auto trees = MakeTrees(spec);
    const FeatureBatch rows = CategoryRows(with_null);
    Batches train({rows});
    ASSERT_TRUE(Train(trees.get(), &train).ok());
    EXPECT_EQ(Accuracy(trees.get(), rows), 1);
    // A category that training never saw is like a missing one; where there was none, like most.
    FeatureBatch probe;
    probe.rows = 4;
    probe.slots.resize(1);
    probe.slots[0].ids = {1, 33, 39};
    probe.slots[0].ends = {1, 2, 2, 3};
    std::vector<double> predictions;
    ASSERT_TRUE(trees->Predict(probe, &predictions).ok());
    EXPECT_EQ(predictions[1], predictions[0]);
    EXPECT_EQ(predictions[2], predictions[0]);
    EXPECT_EQ(predictions[3], predictions[0]);
  }
}

TEST(HistogramLearnerTest, IdsThatAreOrderedArePartedInOrder) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 1);
  Categorizer* hours = AddCategory(&spec, "hour", 25, 0)->mutable_categorizer();
  hours->set_kind(Categorizer::TIME_PART);
  hours->set_time_part("hour");
  hours->set_null_bucket(24);
  spec.mutable_features()->mutable_inputs(0)->set_type(static_cast<int>(DataType::kTimestamp));
  SetClasses(&spec, 2);
  SetInteger(&spec, "max_depth", 1);
  FeatureBatch rows;
  rows.rows = 2'400;
  rows.slots.resize(1);
  for (size_t r = 0; r < rows.rows; ++r) {
    rows.slots[0].ids.push_back(static_cast<uint32_t>(r % 24));
    rows.labels.push_back(r % 24 % 2 == 0 ? 1 : 0);
  }
  const auto trees = MakeTrees(spec);
  Batches train({rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  EXPECT_LT(Accuracy(trees.get(), rows), 0.7) << "no split tells even hours apart";
}

// A missing number goes to the side that it was learnt on; where none was missing, to that of most.
TEST(HistogramLearnerTest, MissingNumbersHaveASide) {
  ModelSpec spec = TreeSpec("xgboost.gbtree", 1);
  AddNumber(&spec, "a");
  SetClasses(&spec, 2);
  FeatureBatch rows;
  rows.rows = 1'000;
  rows.dense_width = 1;
  for (size_t r = 0; r < rows.rows; ++r) {
    rows.dense.push_back(r % 10 < 7 ? 1.0F : 2.0F);
    rows.labels.push_back(r % 10 < 7 ? 1 : 0);
  }
  const auto trees = MakeTrees(spec);
  Batches train({rows});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  FeatureBatch probe = rows.Slice(0, 10);
  probe.dense[9] = NAN;
  std::vector<double> predictions;
  ASSERT_TRUE(trees->Predict(probe, &predictions).ok());
  EXPECT_EQ(predictions[9], predictions[0]);
  EXPECT_NE(predictions[8], predictions[0]);

  for (size_t r = 0; r < rows.rows; r += 5) {  // now missing ones are of class 0
    rows.dense[r] = NAN;
    rows.labels[r] = 0;
  }
  const auto learnt = MakeTrees(spec);
  Batches again({rows});
  ASSERT_TRUE(Train(learnt.get(), &again).ok());
  ASSERT_TRUE(learnt->Predict(probe, &predictions).ok());
  EXPECT_EQ(predictions[9], predictions[8]);
}

TEST(HistogramLearnerTest, TweedieLossesOfPowersOneAndTwoStopNoTrainingEarly) {
  for (const double power : {1.0, 2.0}) {
    ModelSpec spec = NumberTrees("reg:tweedie", 10);
    SetNumber(&spec, "tweedie_variance_power", power);
    SetNumber(&spec, "eta", 0.1);
    SetInteger(&spec, "train.early_stopping_rounds", 2);
    const auto trees = MakeTrees(spec);
    Batches train({NumberRows(2'000, 1)}), validation({NumberRows(500, 2)});
    std::vector<GradientBoosting::Round> rounds;
    ASSERT_TRUE(Train(trees.get(), &train, &validation, &rounds).ok());
    ASSERT_EQ(rounds.size(), 10U) << power;
    EXPECT_LT(rounds.back().metrics.back().second, rounds.front().metrics.back().second) << power;
  }
}

TEST(HistogramLearnerTest, LogarithmicErrorsOfNumbersBelowMinusOneAreUndefined) {
  ModelSpec spec = NumberTrees("reg:squarederror", 1);
  SetText(&spec, "eval_metric", "rmsle");
  FeatureBatch rows = NumberRows(100, 1);
  rows.labels[3] = -2;
  const auto trees = MakeTrees(spec);
  Batches train({rows});
  std::vector<GradientBoosting::Round> rounds;
  ASSERT_TRUE(Train(trees.get(), &train, nullptr, &rounds).ok());
  EXPECT_TRUE(std::isnan(rounds.back().metrics.back().second));
}

// What a training in one process has remembered, and its model.
struct Remembering {
  std::vector<std::string> remembered;
  std::string bytes;
  std::vector<GradientBoosting::Round> rounds;
};

Result<Remembering> GoOnFrom(const ModelSpec& spec, const std::string& base,
                             const FeatureBatch& rows, const FeatureBatch& judges,
                             std::vector<std::string> remembered) {
  Remembering told;
  const auto trees = MakeTrees(spec);
  if (!base.empty()) {
    RETURN_IF_ERROR(trees->Load(base));
  }
  Batches train({rows}), other({judges});
  TrainingMemory memory{.remembered = std::move(remembered), .remember = [&](std::string what) {
                          told.remembered.push_back(std::move(what));
                        }};
  RETURN_IF_ERROR(trees->Train(
      train.Source(), judges.rows > 0 ? other.Source() : GradientBoosting::BatchSource{},
      [&](const auto& round) { told.rounds.push_back(round); }, {}, {}, memory));
  ASSIGN_OR_RETURN(told.bytes, trees->Save());
  return told;
}

std::vector<std::string> First(const std::vector<std::string>& all, size_t count) {
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(HistogramLearnerTest, GoesOnAfterAnyRound) {
  const FeatureBatch rows = ClassRows(2'000, 4, 3), judges = ClassRows(300, 5, 3);
  for (const char* type : {"xgboost.gbtree", "XGBRFClassifier"}) {
    ModelSpec spec = ClassTrees(type, 7, 3);
    SetNumber(&spec, "subsample", 0.7);
    SetNumber(&spec, "colsample_bynode", 0.6);
    const std::string plain = BytesOf(spec, {rows});
    SetInteger(&spec, "train.early_stopping_rounds", 5);
    for (const bool goes_on : {false, true}) {
      SCOPED_TRACE(std::string(type) + (goes_on ? " from a model" : ""));
      const std::string base = goes_on ? plain : "";
      const Result<Remembering> whole = GoOnFrom(spec, base, rows, judges, {});
      ASSERT_TRUE(whole.ok()) << whole.status().ToString();
      const size_t count = whole->remembered.size();
      EXPECT_EQ(count, whole->rounds.size() + 1);
      for (const size_t kept : {size_t{1}, (count + 1) / 2, count}) {
        const auto again = GoOnFrom(spec, base, rows, judges, First(whole->remembered, kept));
        ASSERT_TRUE(again.ok()) << again.status().ToString();
        EXPECT_EQ(again->bytes, whole->bytes) << kept;
        EXPECT_EQ(again->rounds.size(), whole->rounds.size());
        EXPECT_EQ(again->rounds.back().metrics, whole->rounds.back().metrics);
        EXPECT_EQ(again->remembered.size(), count - kept);
      }
    }
  }
}

TEST(HistogramLearnerTest, GoesOnWithTheSameRowsAndTheSameModelOnly) {
  const FeatureBatch rows = ClassRows(2'000, 4, 3);
  const ModelSpec spec = ClassTrees("xgboost.gbtree", 4, 3);
  const std::string base = BytesOf(spec, {rows});
  const auto remembered = GoOnFrom(spec, base, rows, {}, {}).value().remembered;
  const auto fewer = GoOnFrom(spec, base, rows.Slice(1, 2'000), {}, remembered);
  EXPECT_EQ(fewer.status().diagnostics().front().sqlstate, "40001") << fewer.status().ToString();
  const auto without = GoOnFrom(spec, "", rows, {}, remembered);
  EXPECT_EQ(without.status().code(), Code::kFailedPrecondition) << without.status().ToString();
  const auto other = GoOnFrom(spec, BytesOf(spec, {rows.Slice(0, 500)}), rows, {}, remembered);
  EXPECT_EQ(other.status().code(), Code::kFailedPrecondition) << other.status().ToString();
}

TEST(HistogramLearnerTest, WhatIsRememberedOfAnotherForestIsDamaged) {
  const FeatureBatch rows = ClassRows(500, 4, 3);
  const ModelSpec spec = ClassTrees("xgboost.gbtree", 3, 3);
  const auto remembered = GoOnFrom(spec, "", rows, {}, {}).value().remembered;
  const auto refused = [&](std::vector<std::string> told) {
    return GoOnFrom(spec, "", rows, {}, std::move(told)).status().code() == Code::kInternal;
  };
  EXPECT_TRUE(refused({"no start"}));
  EXPECT_TRUE(refused({remembered[1]}));
  EXPECT_TRUE(refused({remembered[0], "no round"}));
  EXPECT_TRUE(refused({remembered[0], remembered[0]}));
  EXPECT_TRUE(refused({remembered[0], remembered[1] + remembered[1]}));
  ModelSpec wider = spec;
  AddNumber(&wider, "d");
  const auto refused_by = [&](const ModelSpec& one) {
    FeatureBatch wide = rows;
    wide.dense_width = 3;
    wide.dense.assign(wide.rows * 3, 1);
    return GoOnFrom(one, "", wide, {}, remembered).status().code() == Code::kInternal;
  };
  EXPECT_TRUE(refused_by(wider));
}

}  // namespace
}  // namespace sluice::models::histogram
