#include "models/metrics/decision_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/metrics/confusion.h"
#include "models/metrics/metric.h"

namespace sluice::models {
namespace {

const std::vector<double> kScores = {0.005F, 0.15F, 0.15F, 0.45F, 0.6F, 0.95F};
const std::vector<double> kLabels = {0, 0, 1, 0, 1, 1};

TEST(DecisionTable, CountsWhatEachThresholdTakes) {
  Metrics metrics(Task::kBinary, 1);
  metrics.Add(kScores, kLabels, {});
  const std::vector<Decision> table = DecisionTable(metrics.Values(DecisionMetrics()));
  ASSERT_EQ(table.size(), 10U);
  EXPECT_EQ(table[0].threshold, 0.01);
  EXPECT_EQ(table[0].true_positives, 3);
  EXPECT_EQ(table[0].false_positives, 2);
  EXPECT_EQ(table[0].true_negatives, 1);
  EXPECT_EQ(table[7].threshold, 0.5);
  EXPECT_EQ(table[7].true_positives, 2);
  EXPECT_EQ(table[7].false_positives, 0);
  EXPECT_EQ(table[7].precision(), 1);
  EXPECT_NEAR(table[7].recall(), 2.0 / 3, 1e-12);
  EXPECT_NEAR(table[7].f1(), 0.8, 1e-12);
  EXPECT_NEAR(table[7].taken(), 1.0 / 3, 1e-12);
  EXPECT_EQ(table[9].true_positives, 1);
}

// Ten rows, three of them positive; from 0.4 on two of these and one other are taken.
TEST(DecisionTable, ARuleSaysAtWhichThresholdDecisionsAreJudged) {
  Metrics metrics(Task::kBinary, 1);
  metrics.Add(std::vector<double>{.1F, .2F, .2F, .3F, .3F, .1F, .4F, .2F, .4F, .45F},
              std::vector<double>{0, 0, 0, 0, 0, 0, 0, 1, 1, 1}, {});
  for (const char* rule : {"f1", "cost:2", "0.35", "0.4"}) {
    std::vector<std::string> wanted = {"balanced_accuracy", "cohen_kappa"};
    for (const std::vector<std::string>& more : {DecisionMetrics(), CountsBy(rule)}) {
      wanted.insert(wanted.end(), more.begin(), more.end());
    }
    auto values = metrics.Values(wanted);
    const auto value = [&values](std::string_view name) {
      const auto found = std::find_if(values.begin(), values.end(),
                                      [name](const auto& one) { return one.first == name; });
      return found == values.end() ? -1 : found->second;
    };
    EXPECT_EQ(value("f1"), 0) << rule;  // from 0.5 on
    DecideBy(rule, &values);
    EXPECT_NEAR(value("precision"), 2.0 / 3, 1e-9) << rule;
    EXPECT_NEAR(value("recall"), 2.0 / 3, 1e-9) << rule;
    EXPECT_NEAR(value("f1"), 2.0 / 3, 1e-9) << rule;
    EXPECT_NEAR(value("accuracy"), 0.8, 1e-9) << rule;
    EXPECT_NEAR(value("balanced_accuracy"), (2.0 / 3 + 6.0 / 7) / 2, 1e-9) << rule;
    EXPECT_NEAR(value("cohen_kappa"), (0.8 - 0.58) / (1 - 0.58), 1e-9) << rule;
    EXPECT_EQ(value("false_negatives"), 1) << rule;
    EXPECT_EQ(DecisionTable(values).size(), 10U) << rule;
    EXPECT_EQ(std::count_if(values.begin(), values.end(),
                            [counts = CountsBy(rule)](const auto& one) {
                              return one.first == counts[0] || one.first == counts[1];
                            }),
              std::string_view(rule) == "0.4" ? 2 : 0)
        << rule;
  }
}

TEST(DecisionTable, IsNotThereWhereNothingWasCounted) {
  EXPECT_TRUE(DecisionTable({{"rmse", 3.0}}).empty());
  EXPECT_TRUE(DecisionTable({{"auc", 0.9}, {"true_positives", 3}}).empty());
}

TEST(ConfusionMatrix, OfTwoClassesHasFourCells) {
  ConfusionMatrix half(1, std::nullopt);
  half.Add(kScores, kLabels, {});
  EXPECT_EQ(half.cells().at({1, 1}), 2);
  EXPECT_EQ(half.cells().at({1, 0}), 1);
  EXPECT_EQ(half.cells().at({0, 0}), 3);
  EXPECT_EQ(half.cells().at({0, 1}), 0);
  ConfusionMatrix low(1, 0.1);
  low.Add(kScores, kLabels, std::vector<float>{1, 2, 1, 1, 1, 1});
  EXPECT_EQ(low.cells().at({0, 1}), 3);
}

TEST(ConfusionMatrix, OfSeveralClassesHasTheCellsThatOccur) {
  ConfusionMatrix matrix(3, std::nullopt);
  matrix.Add(std::vector<double>{0.2F, 0.5F, 0.3F, 0.1F, 0.2F, 0.7F}, std::vector<double>{1, 0},
             {});
  EXPECT_EQ(matrix.cells().size(), 2U);
  EXPECT_EQ(matrix.cells().at({1, 1}), 1);
  EXPECT_EQ(matrix.cells().at({0, 2}), 1);
}

}  // namespace
}  // namespace sluice::models
