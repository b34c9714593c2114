#include "models/trees/gradient_boosting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/models/trees/boosting.h"

namespace sluice::models {
namespace {

struct Learner {
  std::string type;
  std::string objective;
  int classes;
  double accuracy;
};

class LearnerTest : public testing::TestWithParam<Learner> {};

TEST_P(LearnerTest, LearnsPredictsAndComesBackFromItsBytes) {
  const Learner& learner = GetParam();
  ModelSpec spec = ClassTrees(learner.type, 20, learner.classes);
  if (!learner.objective.empty()) {
    SetText(&spec, "objective", learner.objective);
  }
  const auto trees = MakeTrees(spec);
  ASSERT_NE(trees, nullptr);
  Batches train({ClassRows(900, 1, learner.classes), ClassRows(800, 2, learner.classes),
                 ClassRows(1, 3, learner.classes)});
  std::vector<GradientBoosting::Round> rounds;
  const Status status = Train(trees.get(), &train, nullptr, &rounds);
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_FALSE(rounds.empty());
  EXPECT_EQ(rounds.back().round, rounds.back().rounds);
  EXPECT_TRUE(rounds.back().metrics[0].first.starts_with("train-")) << rounds[0].metrics[0].first;
  const FeatureBatch test = ClassRows(1000, 9, learner.classes);
  EXPECT_GT(Accuracy(trees.get(), test), learner.accuracy);

  const auto bytes = trees->Save();
  ASSERT_TRUE(bytes.ok());
  const auto loaded = MakeTrees(spec);
  ASSERT_TRUE(loaded->Load(*bytes).ok());
  std::vector<double> a, b;
  ASSERT_TRUE(trees->Predict(test, &a).ok());
  ASSERT_TRUE(loaded->Predict(test, &b).ok());
  EXPECT_EQ(a, b);
  if (trees->outputs() > 1) {
    EXPECT_NEAR(a[0] + a[1] + a[2], 1, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LearnerTest,
                         testing::Values(Learner{"xgboost.gbtree", "", 2, 0.9},
                                         Learner{"xgboost.gbtree", "binary:logitraw", 2, 0.9},
                                         Learner{"xgboost.gbtree", "multi:softprob", 2, 0.9},
                                         Learner{"xgboost.gbtree", "", 3, 0.85},
                                         Learner{"XGBClassifier", "multi:softmax", 3, 0.85},
                                         Learner{"xgboost.dart", "", 2, 0.9},
                                         Learner{"XGBRFClassifier", "", 2, 0.88},
                                         Learner{"xgboost.XGBRFClassifier", "", 3, 0.8},
                                         Learner{"xgboost.gblinear", "", 2, 0.7}),
                         [](const auto& test) {
                           std::string name = test.param.type + test.param.objective;
                           std::erase_if(name,
                                         [](unsigned char c) { return std::isalnum(c) == 0; });
                           return name + std::to_string(test.param.classes);
                         });

TEST(GradientBoostingTest, NumbersAreLearntInTheirOwnScale) {
  ModelSpec spec = TreeSpec("XGBRegressor", 60);
  AddNumber(&spec, "a");
  SetNumberLabel(&spec, 20, 5);
  for (const char* method : {"hist", "exact", "approx"}) {
    ModelSpec own = spec;
    SetText(&own, "tree_method", method);
    const auto trees = MakeTrees(own);
    FeatureBatch batch;
    batch.rows = 500;
    batch.dense_width = 1;
    for (size_t r = 0; r < batch.rows; ++r) {
      const float a = static_cast<float>(r) / 50;
      batch.dense.push_back(a);
      batch.labels.push_back((3 * a - 20) / 5);  // y = 3 a
    }
    Batches train({batch});
    ASSERT_TRUE(Train(trees.get(), &train).ok()) << method;
    FeatureBatch probe;
    probe.rows = 1;
    probe.dense_width = 1;
    probe.dense = {5};
    std::vector<double> prediction;
    ASSERT_TRUE(trees->Predict(probe, &prediction).ok());
    EXPECT_NEAR(prediction[0], 15, 0.3) << method;
  }
}

TEST(GradientBoostingTest, AForestIsOneRoundOfTrees) {
  const auto forest = MakeTrees(ClassTrees("XGBRFClassifier", 30));
  Batches train({ClassRows(1000, 1)});
  std::vector<GradientBoosting::Round> rounds;
  ASSERT_TRUE(Train(forest.get(), &train, nullptr, &rounds).ok());
  EXPECT_EQ(rounds.size(), 1u);
  const auto importance = forest->FeatureImportance();
  ASSERT_TRUE(importance.ok());
  double splits = 0;
  for (const auto& feature : *importance) {
    splits += feature.splits;
  }
  EXPECT_GT(splits, 30 * 5) << "thirty trees, not one";
}

TEST(GradientBoostingTest, ImportanceNamesFeatures) {
  const auto trees = MakeTrees(ClassTrees("xgboost.gbtree"));
  Batches train({ClassRows(2000, 1)});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  const auto importance = trees->FeatureImportance();
  ASSERT_TRUE(importance.ok());
  ASSERT_EQ(importance->size(), 3u);
  std::map<std::string, double> gain;
  for (size_t i = 0; i < 3; ++i) {
    gain[(*importance)[i].feature] = (*importance)[i].gain;
    EXPECT_GT((*importance)[i].splits, 0);
  }
  EXPECT_GT(gain["b"], 0);
  EXPECT_GT(gain["c"], 0);
  EXPECT_GE((*importance)[0].gain, (*importance)[1].gain);
}

TEST(GradientBoostingTest, ASparseCellIsAColumnPerId) {
  // The label says whether id 7 is among the row's ids, which needs a column for this id.
  ModelSpec spec = TreeSpec("xgboost.gbtree", 20);
  AddNumber(&spec, "a");
  Feature* ids = AddCategory(&spec, "ids", 50, 0);
  ids->mutable_format()->set_kind(TensorFormat::CSV);
  ids->mutable_format()->set_delimiter(",");
  ids->mutable_format()->set_sparse(true);
  spec.mutable_features()->mutable_inputs(1)->set_type(static_cast<int>(DataType::kText));
  SetClasses(&spec, 2);
  const auto trees = MakeTrees(spec);
  ASSERT_NE(trees, nullptr);
  const auto rows = [](size_t n, uint32_t seed) {
    std::mt19937 random(seed);
    FeatureBatch batch;
    batch.rows = n;
    batch.dense_width = 1;
    batch.slots.resize(1);
    for (size_t r = 0; r < n; ++r) {
      bool seven = false;
      for (size_t i = random() % 12; i > 0; --i) {
        batch.slots[0].ids.push_back(static_cast<uint32_t>(random() % 50));
        seven = seven || batch.slots[0].ids.back() == 7;
      }
      batch.slots[0].ends.push_back(static_cast<uint32_t>(batch.slots[0].ids.size()));
      batch.dense.push_back(r % 2 == 0 ? NAN : 1);
      batch.labels.push_back(seven ? 1 : 0);
    }
    return batch;
  };
  Batches train({rows(1000, 1), rows(1000, 2)});
  Status status = Train(trees.get(), &train);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Accuracy(trees.get(), rows(500, 3)), 1);
}

TEST(GradientBoostingTest, AMissingNumberIsMissingLikeNull) {
  ModelSpec spec = ClassTrees("xgboost.gbtree");
  SetNumber(&spec, "missing", -999);
  const auto trees = MakeTrees(spec);
  Batches train({ClassRows(2000, 1)});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  FeatureBatch null = ClassRows(200, 5);
  FeatureBatch number = null;
  for (size_t i = 1; i < null.dense.size(); i += 2) {
    null.dense[i] = NAN;
    number.dense[i] = -999;
  }
  std::vector<double> a, b;
  ASSERT_TRUE(trees->Predict(null, &a).ok());
  ASSERT_TRUE(trees->Predict(number, &b).ok());
  EXPECT_EQ(a, b);
}

TEST(GradientBoostingTest, WeightsCount) {
  // Rows of class 1 have weight zero.
  FeatureBatch batch = ClassRows(1000, 1);
  for (const float label : batch.labels) {
    batch.weights.push_back(label > 0 ? 0.0f : 1.0f);
  }
  const auto trees = MakeTrees(ClassTrees("xgboost.gbtree"));
  Batches train({batch});
  ASSERT_TRUE(Train(trees.get(), &train).ok());
  std::vector<double> predictions;
  ASSERT_TRUE(trees->Predict(batch, &predictions).ok());
  EXPECT_LT(*std::max_element(predictions.begin(), predictions.end()), 0.1f);
}

TEST(GradientBoostingTest, SameSeedSameBytes) {
  ModelSpec spec = ClassTrees("xgboost.gbtree");
  SetNumber(&spec, "subsample", 0.5);
  const auto bytes = [&](uint64_t seed) {
    spec.set_seed(seed);
    const auto trees = MakeTrees(spec);
    Batches train({ClassRows(700, 1), ClassRows(700, 2)});
    EXPECT_TRUE(Train(trees.get(), &train).ok());
    return std::move(trees->Save()).value();
  };
  EXPECT_EQ(bytes(1), bytes(1));
  EXPECT_NE(bytes(1), bytes(2));
}

TEST(GradientBoostingTest, ValidationIsToldAndStopsEarly) {
  ModelSpec spec = ClassTrees("xgboost.gbtree", 500);
  SetInteger(&spec, "train.early_stopping_rounds", 5);
  SetText(&spec, "eval_metric", "auc, logloss");
  SetNumber(&spec, "eta", 0.9);
  const auto trees = MakeTrees(spec);
  Batches train({ClassRows(400, 1)}), validation({ClassRows(400, 2)});
  std::vector<GradientBoosting::Round> rounds;
  const Status status = Train(trees.get(), &train, &validation, &rounds);
  ASSERT_TRUE(status.ok()) << status.ToString();
  std::vector<std::string> names;
  for (const auto& metric : rounds[0].metrics) {
    names.push_back(metric.first);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"train-auc", "train-logloss", "validation-auc",
                                             "validation-logloss"}));
  ASSERT_LT(rounds.size(), 500u);
  // The model is that of the best round, five before the last.
  std::vector<double> predictions;
  const FeatureBatch rows = ClassRows(400, 2);
  ASSERT_TRUE(trees->Predict(rows, &predictions).ok());
  double loss = 0;
  for (size_t r = 0; r < rows.rows; ++r) {
    const double p = static_cast<double>(rows.labels[r] > 0 ? predictions[r] : 1 - predictions[r]);
    loss -= std::log(p) / 400;
  }
  EXPECT_NEAR(loss, rounds[rounds.size() - 6].metrics.back().second, 1e-4);
}

TEST(GradientBoostingTest, LargeTablesAreToldAboutTheirRowsLessOften) {
  for (const bool stops_early : {false, true}) {
    ModelSpec spec = ClassTrees("xgboost.gbtree", 6);
    if (stops_early) {
      SetInteger(&spec, "train.early_stopping_rounds", 5);
    }
    const auto trees = MakeTrees(spec);
    const FeatureBatch batch = ClassRows(50'000, 1);
    Batches train({batch, batch, batch, batch, batch}), validation({ClassRows(500, 2)});
    std::vector<GradientBoosting::Round> rounds;
    ASSERT_TRUE(Train(trees.get(), &train, &validation, &rounds).ok());
    ASSERT_EQ(rounds.size(), 6u);
    std::vector<double> told, held_out;
    for (const auto& round : rounds) {
      ASSERT_EQ(round.metrics.size(), 2u);
      ASSERT_EQ(round.metrics[0].first, "train-logloss");
      ASSERT_EQ(round.metrics[1].first, "validation-logloss");
      told.push_back(round.metrics[0].second);
      held_out.push_back(round.metrics[1].second);
    }
    for (const std::vector<double>* metric : {&told, &held_out}) {
      const bool every_round = stops_early && metric == &held_out;
      EXPECT_EQ((*metric)[1] < (*metric)[0], every_round);
      EXPECT_EQ((*metric)[2] < (*metric)[1], every_round);
      EXPECT_LT((*metric)[3], (*metric)[2]);
      EXPECT_EQ((*metric)[4] < (*metric)[3], every_round);
      EXPECT_LT((*metric)[5], (*metric)[4]) << "the last round always";
    }
  }
}

TEST(GradientBoostingTest, GoesOnFromALoadedModel) {
  const ModelSpec spec = ClassTrees("xgboost.gbtree", 10);
  const auto first = MakeTrees(spec);
  Batches train({ClassRows(1500, 1)});
  std::vector<GradientBoosting::Round> rounds;
  ASSERT_TRUE(Train(first.get(), &train, nullptr, &rounds).ok());
  const auto second = MakeTrees(spec);
  ASSERT_TRUE(second->Load(*first->Save()).ok());
  std::vector<GradientBoosting::Round> more;
  Batches again({ClassRows(1500, 1)});
  ASSERT_TRUE(Train(second.get(), &again, nullptr, &more).ok());
  EXPECT_LT(more.front().metrics[0].second, rounds.back().metrics[0].second);

  const auto both = MakeTrees(ClassTrees("xgboost.gbtree", 20));
  Batches whole({ClassRows(1500, 1)});
  std::vector<GradientBoosting::Round> all;
  ASSERT_TRUE(Train(both.get(), &whole, nullptr, &all).ok());
  EXPECT_NEAR(more.back().metrics[0].second, all.back().metrics[0].second, 1e-6);
}

TEST(GradientBoostingTest, StopsWhenAsked) {
  const auto trees = MakeTrees(ClassTrees("xgboost.gbtree", 1000));
  Batches train({ClassRows(500, 1)});
  std::stop_source stop;
  int rounds = 0;
  const Status status = trees->Train(
      train.Source(), {},
      [&](const GradientBoosting::Round&) {
        if (++rounds == 3) {
          stop.request_stop();
        }
      },
      stop.get_token());
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(rounds, 3);
}

// Rows of queries: relevance increases with the number.
FeatureBatch QueryRows(size_t queries, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform;
  FeatureBatch batch;
  batch.dense_width = 1;
  for (size_t q = 0; q < queries; ++q) {
    for (size_t i = 0; i < 2 + q % 7; ++i) {
      const float a = uniform(random);
      batch.dense.push_back(a);
      batch.labels.push_back(std::floor(a * 3));
      batch.groups.push_back(static_cast<int64_t>(1000 + q));
      ++batch.rows;
    }
  }
  return batch;
}

ModelSpec RankerSpec() {
  ModelSpec spec = TreeSpec("XGBRanker", 20);
  AddNumber(&spec, "a");
  SetNumberLabel(&spec, 0, 1);
  spec.mutable_features()->set_group_column("query");
  return spec;
}

TEST(RankerTest, OrdersTheRowsOfAQueryWhereverBatchesAreCut) {
  for (const char* objective : {"rank:pairwise", "rank:ndcg", "rank:map"}) {
    ModelSpec spec = RankerSpec();
    SetText(&spec, "objective", objective);
    const auto trees = MakeTrees(spec);
    const FeatureBatch rows = QueryRows(200, 1);
    Batches train({rows.Slice(0, 333), rows.Slice(333, rows.rows)});
    std::vector<GradientBoosting::Round> rounds;
    const Status status = Train(trees.get(), &train, nullptr, &rounds);
    ASSERT_TRUE(status.ok()) << status.ToString();
    FeatureBatch probe;
    probe.rows = 3;
    probe.dense_width = 1;
    probe.dense = {0.1f, 0.5f, 0.9f};
    std::vector<double> scores;
    ASSERT_TRUE(trees->Predict(probe, &scores).ok());
    EXPECT_LT(scores[0], scores[1]) << objective;
    EXPECT_LE(scores[1], scores[2]) << objective;
  }
}

TEST(RankerTest, ScatteredQueriesAndMissingQueriesAreErrors) {
  FeatureBatch rows = QueryRows(50, 1);
  rows.groups.back() = 1000;
  const auto trees = MakeTrees(RankerSpec());
  Batches train({rows});
  Status status = Train(trees.get(), &train);
  EXPECT_EQ(status.message(), "the rows of query 1000 do not stand together in column 'query'");
  EXPECT_EQ(status.diagnostics()[0].hint, "ORDER BY query in the select");
  rows.groups.clear();
  Batches without({rows});
  status = Train(trees.get(), &without);
  EXPECT_EQ(status.message(), "a ranking needs the query of every row");
}

}  // namespace
}  // namespace sluice::models
