#include "models/metrics/decision_table.h"

#include <gtest/gtest.h>

#include "models/metrics/confusion.h"
#include "models/metrics/metric.h"

namespace sluice::models {
namespace {

const std::vector<float> kScores = {0.005F, 0.15F, 0.15F, 0.45F, 0.6F, 0.95F};
const std::vector<float> kLabels = {0, 0, 1, 0, 1, 1};

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
  matrix.Add(std::vector<float>{0.2F, 0.5F, 0.3F, 0.1F, 0.2F, 0.7F}, std::vector<float>{1, 0}, {});
  EXPECT_EQ(matrix.cells().size(), 2U);
  EXPECT_EQ(matrix.cells().at({1, 1}), 1);
  EXPECT_EQ(matrix.cells().at({0, 2}), 1);
}

}  // namespace
}  // namespace sluice::models
