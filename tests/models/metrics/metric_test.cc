#include "models/metrics/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

std::map<std::string, double> ValuesOf(const Metrics& metrics) {
  const auto values = metrics.Values();
  return {values.begin(), values.end()};
}

struct Scored {
  std::vector<double> scores;
  std::vector<double> labels;
};

// Rows whose label is drawn from the score: `skew` 1 is uniform, larger values push scores to 0.
Scored Draw(size_t rows, double skew, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Scored drawn;
  for (size_t i = 0; i < rows; ++i) {
    const double score = std::pow(uniform(random), skew);
    drawn.scores.push_back(static_cast<float>(score));
    drawn.labels.push_back(uniform(random) < 0.2 + 0.6 * uniform(random) * score ? 1 : 0);
  }
  return drawn;
}

// By sorting all rows: ties count half.
double ExactAuc(const Scored& data) {
  std::vector<size_t> order(data.scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&data](size_t a, size_t b) { return data.scores[a] < data.scores[b]; });
  double below = 0, positives = 0, pairs = 0;
  for (size_t i = 0; i < order.size();) {
    double tied_positive = 0, tied_negative = 0;
    size_t j = i;
    for (; j < order.size() && data.scores[order[j]] == data.scores[order[i]]; ++j) {
      (data.labels[order[j]] > 0 ? tied_positive : tied_negative) += 1;
    }
    pairs += tied_positive * (below + tied_negative / 2);
    below += tied_negative;
    positives += tied_positive;
    i = j;
  }
  return pairs / (below * positives);
}

// As in scikit-learn: tied rows are taken together.
double ExactAveragePrecision(const Scored& data) {
  std::vector<std::pair<float, float>> rows;
  for (size_t i = 0; i < data.scores.size(); ++i) {
    rows.emplace_back(data.scores[i], data.labels[i]);
  }
  std::sort(rows.begin(), rows.end(), std::greater<>());
  double positives = 0, sum = 0;
  for (size_t i = 0; i < rows.size();) {
    double tied = 0;
    size_t j = i;
    for (; j < rows.size() && rows[j].first == rows[i].first; ++j) {
      tied += rows[j].second > 0 ? 1 : 0;
    }
    positives += tied;
    sum += tied * positives / static_cast<double>(j);
    i = j;
  }
  return sum / positives;
}

TEST(BinaryMetricsTest, SmallExampleByHand) {
  Metrics metrics(Task::kBinary, 1);
  metrics.Add(std::vector<double>{0.9F, 0.6F, 0.4F, 0.2F}, std::vector<double>{1, 0, 1, 0}, {});
  const auto values = ValuesOf(metrics);
  EXPECT_DOUBLE_EQ(values.at("auc"), 0.75);
  EXPECT_NEAR(values.at("pr_auc"), (1 + 2.0 / 3) / 2, 1e-12);
  EXPECT_NEAR(values.at("log_loss"),
              -(std::log(0.9) + std::log(0.4) + std::log(0.4) + std::log(0.8)) / 4, 1e-6);
  EXPECT_DOUBLE_EQ(values.at("accuracy"), 0.5);
  EXPECT_DOUBLE_EQ(values.at("precision"), 0.5);
  EXPECT_DOUBLE_EQ(values.at("recall"), 0.5);
  EXPECT_DOUBLE_EQ(values.at("f1"), 0.5);
  EXPECT_NEAR(values.at("calibration"), 2.1 / 2, 1e-6);
  EXPECT_DOUBLE_EQ(metrics.Value("true_positives"), 1);
  EXPECT_DOUBLE_EQ(metrics.Value("false_negatives"), 1);
  EXPECT_NEAR(metrics.Value("brier_score"), (0.01 + 0.36 + 0.36 + 0.04) / 4, 1e-6);
  EXPECT_DOUBLE_EQ(metrics.Value("cohen_kappa"), 0);
  EXPECT_DOUBLE_EQ(metrics.rows(), 4);
}

TEST(BinaryMetricsTest, OrderOfValuesIsStable) {
  std::vector<std::string> names;
  for (const auto& [name, value] : Metrics(Task::kBinary, 1).Values()) {
    names.push_back(name);
    EXPECT_TRUE(std::isnan(value)) << name;
  }
  EXPECT_THAT(names, ElementsAre("auc", "pr_auc", "log_loss", "accuracy", "precision", "recall",
                                 "f1", "calibration"));
}

TEST(BinaryMetricsTest, TiesCountHalfAndOneClassHasNoAuc) {
  Metrics tied(Task::kBinary, 1);
  tied.Add(std::vector<double>{0.5F, 0.5F, 0.5F}, std::vector<double>{1, 0, 1}, {});
  EXPECT_DOUBLE_EQ(tied.Value("auc"), 0.5);
  Metrics one(Task::kBinary, 1);
  one.Add(std::vector<double>{0.5F, 0.7F}, std::vector<double>{1, 1}, {});
  EXPECT_TRUE(std::isnan(one.Value("auc")));
}

TEST(BinaryMetricsTest, WeightsCountAsRepeatedRows) {
  Metrics weighted(Task::kBinary, 1);
  weighted.Add(std::vector<double>{0.9F, 0.6F, 0.4F}, std::vector<double>{1, 0, 1},
               std::vector<float>{1, 2, 3});
  Metrics repeated(Task::kBinary, 1);
  repeated.Add(std::vector<double>{0.9F, 0.6F, 0.6F, 0.4F, 0.4F, 0.4F},
               std::vector<double>{1, 0, 0, 1, 1, 1}, {});
  const auto a = ValuesOf(weighted);
  for (const auto& [name, value] : ValuesOf(repeated)) {
    EXPECT_NEAR(a.at(name), value, 1e-12) << name;
  }
}

TEST(BinaryMetricsTest, TwoOutputsAreBothClasses) {
  Metrics metrics(Task::kBinary, 2);
  metrics.Add(std::vector<double>{0.1F, 0.9F, 0.8F, 0.2F}, std::vector<double>{1, 0}, {});
  EXPECT_DOUBLE_EQ(metrics.Value("accuracy"), 1);
  EXPECT_DOUBLE_EQ(metrics.Value("auc"), 1);
}

TEST(BinaryMetricsTest, CurvesAreExactEnoughForSkewedScores) {
  // More distinct scores than bins; scores near 0, uniform, and concentrated in a narrow range.
  for (const double skew : {1.0, 8.0, 60.0}) {
    Scored data = Draw(200'000, skew, 3);
    Metrics metrics(Task::kBinary, 1);
    metrics.Add(data.scores, data.labels, {});
    EXPECT_NEAR(metrics.Value("auc"), ExactAuc(data), 1e-4) << skew;
    EXPECT_NEAR(metrics.Value("pr_auc"), ExactAveragePrecision(data), 1e-4) << skew;
    for (double& score : data.scores) {
      score = 0.73F + static_cast<float>(score) * 0.001F;
    }
    Metrics crowded(Task::kBinary, 1);
    crowded.Add(data.scores, data.labels, {});
    EXPECT_NEAR(crowded.Value("auc"), ExactAuc(data), 1e-4) << skew;
    for (double& score : data.scores) {
      score = 1 - (static_cast<float>(score) - 0.73F) * 0.01F;
    }
    Metrics high(Task::kBinary, 1);
    high.Add(data.scores, data.labels, {});
    EXPECT_NEAR(high.Value("auc"), ExactAuc(data), 1e-4) << skew;
  }
}

TEST(BinaryMetricsTest, MergingInAnyOrderGivesTheSame) {
  const Scored data = Draw(200'000, 3, 5);
  constexpr size_t kShards = 7;
  std::vector<Metrics> shards;
  Metrics whole(Task::kBinary, 1);
  for (size_t s = 0; s < kShards; ++s) {
    const size_t begin = data.scores.size() * s / kShards;
    const size_t count = data.scores.size() * (s + 1) / kShards - begin;
    const std::span<const double> scores = std::span(data.scores).subspan(begin, count);
    const std::span<const double> labels = std::span(data.labels).subspan(begin, count);
    shards.emplace_back(Task::kBinary, 1);
    shards.back().Add(scores, labels, {});
    whole.Add(scores, labels, {});
  }
  Metrics forward(Task::kBinary, 1);
  Metrics backward(Task::kBinary, 1);
  for (size_t s = 0; s < kShards; ++s) {
    forward.Merge(shards[s]);
    backward.Merge(shards[kShards - 1 - s]);
  }
  const auto expected = ValuesOf(whole);
  for (const auto& [name, value] : ValuesOf(forward)) {
    EXPECT_NEAR(value, expected.at(name), 1e-9) << name;
    EXPECT_NEAR(value, backward.Value(name), 1e-9) << name;
  }
}

TEST(MetricsTest, BytesAreTheSameMetricsAgainAndStaySmall) {
  const Scored data = Draw(200'000, 3, 6);
  Metrics metrics(Task::kBinary, 1);
  metrics.Add(data.scores, data.labels, {});
  const std::string bytes = metrics.Serialize();
  EXPECT_LT(bytes.size(), 1'000'000U);
  Result<Metrics> again = Metrics::Deserialize(bytes);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  const auto expected = ValuesOf(metrics);
  for (const auto& [name, value] : again->Values()) {
    EXPECT_DOUBLE_EQ(value, expected.at(name)) << name;
  }
  EXPECT_EQ(again->Serialize(), bytes);
  EXPECT_DOUBLE_EQ(again->rows(), 200'000);
}

TEST(MetricsTest, DamagedBytesAreRefused) {
  Metrics metrics(Task::kMulticlass, 3);
  metrics.Add(std::vector<double>{0.2F, 0.5F, 0.3F}, std::vector<double>{1}, {});
  const std::string bytes = metrics.Serialize();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Metrics::Deserialize(bytes.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(Metrics::Deserialize(bytes + "x").ok());
  EXPECT_FALSE(Metrics::Deserialize("\xff\xff\xff\xff").ok());
}

TEST(MulticlassMetricsTest, MacroAveragesByHand) {
  Metrics metrics(Task::kMulticlass, 3);
  metrics.Add(std::vector<double>{0.7F, 0.2F, 0.1F,   // 0 predicted as 0
                                  0.6F, 0.3F, 0.1F,   // 1 predicted as 0
                                  0.1F, 0.8F, 0.1F,   // 1 predicted as 1
                                  0.2F, 0.2F, 0.6F},  // 2 predicted as 2
              std::vector<double>{0, 1, 1, 2}, {});
  const auto values = ValuesOf(metrics);
  EXPECT_DOUBLE_EQ(values.at("accuracy"), 0.75);
  EXPECT_NEAR(values.at("precision"), (0.5 + 1 + 1) / 3, 1e-12);
  EXPECT_NEAR(values.at("recall"), (1 + 0.5 + 1) / 3, 1e-12);
  EXPECT_NEAR(values.at("f1"), (2.0 / 3 + 2.0 / 3 + 1) / 3, 1e-12);
  EXPECT_NEAR(values.at("log_loss"),
              -(std::log(0.7) + std::log(0.3) + std::log(0.8) + std::log(0.6)) / 4, 1e-6);
  EXPECT_NEAR(values.at("auc"), 1, 1e-12);
  EXPECT_NEAR(metrics.Value("balanced_accuracy"), (1 + 0.5 + 1) / 3, 1e-12);
  EXPECT_TRUE(std::isnan(metrics.Value("pr_auc")));
}

TEST(MulticlassMetricsTest, ManyClassesKeepNoCurves) {
  Metrics metrics(Task::kMulticlass, 200);
  std::vector<double> scores(200, 0);
  scores[7] = 1;
  metrics.Add(scores, std::vector<double>{7}, {});
  EXPECT_DOUBLE_EQ(metrics.Value("accuracy"), 1);
  EXPECT_TRUE(std::isnan(metrics.Value("auc")));
}

TEST(RegressionMetricsTest, ByHandAndMerged) {
  const std::vector<double> predictions = {1, 2, 4, 0};
  const std::vector<double> labels = {1, 4, 2, 0};
  Metrics whole(Task::kRegression, 1);
  whole.Add(predictions, labels, {});
  const auto values = ValuesOf(whole);
  EXPECT_DOUBLE_EQ(values.at("mse"), 2);
  EXPECT_DOUBLE_EQ(values.at("rmse"), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(values.at("mae"), 1);
  EXPECT_NEAR(values.at("r2"), 1 - 8 / 8.75, 1e-12);
  EXPECT_NEAR(values.at("mape"), 100 * (0.5 + 1) / 3, 1e-9);
  EXPECT_NEAR(whole.Value("explained_variance"), 1 - 8 / 8.75, 1e-12);
  Metrics left(Task::kRegression, 1);
  Metrics right(Task::kRegression, 1);
  left.Add(std::span(predictions).first(1), std::span(labels).first(1), {});
  right.Add(std::span(predictions).subspan(1), std::span(labels).subspan(1), {});
  left.Merge(right);
  for (const auto& [name, value] : left.Values()) {
    EXPECT_NEAR(value, values.at(name), 1e-12) << name;
  }
}

TEST(RegressionMetricsTest, LargeLabelsKeepTheirVariance) {
  Metrics metrics(Task::kRegression, 1);
  std::vector<double> labels;
  for (int i = 0; i < 1000; ++i) {
    labels.push_back(1e6F + static_cast<float>(i % 2));
  }
  std::vector<double> predictions(labels.size(), 1e6F + 0.5F);
  metrics.Add(predictions, labels, {});
  EXPECT_NEAR(metrics.Value("r2"), 0, 1e-9);
}

TEST(RegressionMetricsTest, VectorsAndConstantLabels) {
  Metrics vectors(Task::kRegression, 2);
  vectors.Add(std::vector<double>{1, 2, 3, 4}, std::vector<double>{1, 2, 3, 6}, {});
  EXPECT_DOUBLE_EQ(vectors.Value("mse"), 1);
  EXPECT_DOUBLE_EQ(vectors.rows(), 2);
  EXPECT_DOUBLE_EQ(vectors.Value("rmse"), std::sqrt(2.0) / 2);  // each number's value, averaged
  EXPECT_DOUBLE_EQ(vectors.Value("r2"), (1 + 0.5) / 2);
  const auto again = Metrics::Deserialize(vectors.Serialize());
  ASSERT_TRUE(again.ok());
  vectors.Merge(*again);
  EXPECT_DOUBLE_EQ(vectors.Value("r2"), (1 + 0.5) / 2);
  Metrics constant(Task::kRegression, 1);
  constant.Add(std::vector<double>{1, 2}, std::vector<double>{3, 3}, {});
  EXPECT_TRUE(std::isnan(constant.Value("r2")));
}

// 32 bits do not tell these labels apart.
TEST(RegressionMetricsTest, OfCloseNumbersByHand) {
  Metrics metrics(Task::kRegression, 1);
  metrics.Add(std::vector<double>{1e9 + 0.25, 1e9 + 0.5, 1e9 + 0.5},
              std::vector<double>{1e9, 1e9 + 0.5, 1e9 + 1}, {});
  EXPECT_DOUBLE_EQ(metrics.Value("mse"), (0.0625 + 0.25) / 3);
  EXPECT_DOUBLE_EQ(metrics.Value("mae"), 0.25);
  EXPECT_DOUBLE_EQ(metrics.Value("mape"), 100 * (0.25e-9 + 0.5 / (1e9 + 1)) / 3);
  EXPECT_NEAR(metrics.Value("r2"), 1 - 0.3125 / 0.5, 1e-6);
}

TEST(RegressionMetricsTest, OfOneNumberHaveNoShareOfItsVariance) {
  const std::vector<double> predictions(9, 0.25), labels(9, 0.1);
  const std::vector<float> weights = {0.3F, 1, 7, 1e-3F, 0.7F, 3, 0.1F, 0.1F, 11};
  Metrics whole(Task::kRegression, 1), part(Task::kRegression, 1);
  whole.Add(predictions, labels, weights);
  part.Add(predictions, labels, std::vector<float>(9, 0.7F));
  whole.Merge(part);
  EXPECT_TRUE(std::isnan(whole.Value("r2")));
  EXPECT_NEAR(whole.Value("rmse"), 0.15, 1e-12);
}

// The squares of these are no doubles.
TEST(RegressionMetricsTest, OfAnyMagnitude) {
  for (const double unit : {1e300, 1e-300}) {
    ModelSpec model;
    LabelPlan* label = model.mutable_features()->mutable_label();
    label->set_kind(LabelPlan::NUMBER);
    label->set_mean(unit);
    label->set_scale(unit);
    const auto near = [unit](double found, double expected) {
      EXPECT_NEAR(found / unit, expected, 1e-12) << unit;
    };
    Metrics metrics(model, 1), empty(Task::kRegression, 1);
    metrics.Add(std::vector<double>{1 * unit, 2 * unit}, std::vector<double>{2 * unit, 2 * unit},
                {});
    metrics.Add(std::vector<double>{4 * unit, 4 * unit}, std::vector<double>{4 * unit, 3 * unit},
                {});
    empty.Merge(*Metrics::Deserialize(metrics.Serialize()));
    near(empty.Value("rmse"), std::sqrt(0.5));
    near(empty.Value("mae"), 0.5);
    EXPECT_NEAR(empty.Value("mape"), 100 * (0.5 + 1.0 / 3) / 4, 1e-9);
    EXPECT_NEAR(empty.Value("r2"), 1 - 2 / 2.75, 1e-9);
    EXPECT_NEAR(empty.Value("explained_variance"), 1 - 2 / 2.75, 1e-9);
  }
}

ModelSpec QuantileModel() {
  ModelSpec model;
  model.set_loss("quantile");
  Attribute* attribute = model.add_attributes();
  attribute->set_name("model.quantiles");
  attribute->mutable_numbers()->add_values(0.025);
  attribute->mutable_numbers()->add_values(0.5);
  return model;
}

TEST(QuantileMetricsTest, ByHandMergedAndAsBytes) {
  const ModelSpec model = QuantileModel();
  EXPECT_EQ(TaskOf(model), Task::kQuantiles);
  EXPECT_THAT(Metrics::Names(model), ElementsAre("pinball_loss", "coverage_q2_5", "coverage_q50"));
  EXPECT_THAT(Metrics::StandardNames(model),
              ElementsAre("pinball_loss", "coverage_q2_5", "coverage_q50"));
  Metrics left(model, 2), right(model, 2);
  left.Add(std::vector<double>{1, 3, 1, 3}, std::vector<double>{2, 3}, std::vector<float>{1, 3});
  right.Add(std::vector<double>{1, 3}, std::vector<double>{0}, {});
  Metrics whole(Task::kQuantiles, 2);  // as a master's, which learns the quantiles from the others
  for (const Metrics* part : {&left, &right}) {
    Result<Metrics> again = Metrics::Deserialize(part->Serialize());
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    whole.Merge(*again);
  }
  const auto values = ValuesOf(whole);
  const double low = 1 * 0.025 + 3 * (2 * 0.025) + 0.975;
  const double middle = 0.5 + 0 + 0.5 * 3;
  EXPECT_NEAR(values.at("pinball_loss"), (low + middle) / 2 / 5, 1e-12);
  EXPECT_DOUBLE_EQ(values.at("coverage_q2_5"), 1.0 / 5);
  EXPECT_DOUBLE_EQ(values.at("coverage_q50"), 1);
  EXPECT_FALSE(Metrics::HigherIsBetter("pinball_loss"));
  EXPECT_EQ(Metrics::CanonicalName("Coverage_Q2_5"), "coverage_q2_5");
  const std::string bytes = whole.Serialize();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Metrics::Deserialize(bytes.substr(0, size)).ok()) << size;
  }
}

TEST(RankingMetricsTest, NdcgByQueryAcrossCalls) {
  Metrics metrics(Task::kRanking, 1);
  const std::vector<int64_t> first = {1, 1, 2};
  const std::vector<int64_t> second = {2, 3};
  // Query 1: the relevant row comes second. Query 2: in order. Query 3: nothing relevant.
  metrics.Add(std::vector<double>{0.9F, 0.5F, 0.9F}, std::vector<double>{0, 1, 2}, {}, first);
  metrics.Add(std::vector<double>{0.5F, 0.1F}, std::vector<double>{1, 0}, {}, second);
  const double expected = (1 / std::log2(3.0) + 1 + 1) / 3;
  EXPECT_NEAR(metrics.Value("ndcg"), expected, 1e-12);
  Result<Metrics> again = Metrics::Deserialize(metrics.Serialize());
  ASSERT_TRUE(again.ok());
  EXPECT_NEAR(again->Value("ndcg"), expected, 1e-12);
  Metrics merged(Task::kRanking, 1);
  merged.Merge(metrics);
  EXPECT_NEAR(merged.Value("ndcg"), expected, 1e-12);
}

TEST(MetricsTest, SpellingsOfSqlflow) {
  EXPECT_EQ(Metrics::CanonicalName("Accuracy"), "accuracy");
  EXPECT_EQ(Metrics::CanonicalName("accuracy_score"), "accuracy");
  EXPECT_EQ(Metrics::CanonicalName("AUC"), "auc");
  EXPECT_EQ(Metrics::CanonicalName("roc_auc_score"), "auc");
  EXPECT_EQ(Metrics::CanonicalName("average_precision_score"), "pr_auc");
  EXPECT_EQ(Metrics::CanonicalName("MeanAbsoluteError"), "mae");
  EXPECT_EQ(Metrics::CanonicalName("RootMeanSquaredError"), "rmse");
  EXPECT_EQ(Metrics::CanonicalName("r2_score"), "r2");
  EXPECT_EQ(Metrics::CanonicalName("TruePositives"), "true_positives");
  EXPECT_EQ(Metrics::CanonicalName("beauty"), "");
  EXPECT_TRUE(Metrics::HigherIsBetter("auc"));
  EXPECT_FALSE(Metrics::HigherIsBetter("log_loss"));
  EXPECT_FALSE(Metrics::HigherIsBetter("rmse"));
}

TEST(MetricsTest, EveryNameIsItsOwnSpellingAndHasAValue) {
  Metrics binary(Task::kBinary, 1);
  binary.Add(std::vector<double>{0.9F, 0.6F, 0.4F}, std::vector<double>{1, 0, 1}, {});
  for (const std::string& name : Metrics::Names(Task::kBinary)) {
    EXPECT_FALSE(std::isnan(binary.Value(name))) << name;
  }
  for (const Task task : {Task::kBinary, Task::kMulticlass, Task::kRegression, Task::kRanking}) {
    for (const std::string& name : Metrics::Names(task)) {
      EXPECT_EQ(Metrics::CanonicalName(name), name);
    }
    for (const auto& [name, value] : Metrics(task, 2).Values()) {
      EXPECT_THAT(Metrics::Names(task), Contains(name));
    }
  }
}

}  // namespace
}  // namespace sluice::models
