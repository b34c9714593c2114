#include "elastic/master/early_stopping.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::elastic {
namespace {

TEST(EarlyStopping, IsOffWithoutPatience) {
  EarlyStopping stopping(0, 0, "", false);
  EXPECT_FALSE(stopping.EndEpoch(Epoch(1), 0.5, {}));
  EXPECT_FALSE(stopping.PatienceOver(Epoch(100)));
  EXPECT_EQ(stopping.best().epoch, Epoch(0));
}

TEST(EarlyStopping, KeepsTheEpochWithTheLowestLoss) {
  EarlyStopping stopping(2, 0, "", false);
  EXPECT_TRUE(stopping.EndEpoch(Epoch(1), 0.5, {}));
  EXPECT_TRUE(stopping.EndEpoch(Epoch(2), 0.4, {}));
  EXPECT_FALSE(stopping.EndEpoch(Epoch(3), 0.4, {})) << "as good is no improvement";
  EXPECT_FALSE(stopping.PatienceOver(Epoch(3)));
  EXPECT_FALSE(stopping.EndEpoch(Epoch(4), 0.45, {}));
  EXPECT_TRUE(stopping.PatienceOver(Epoch(4)));
  EXPECT_EQ(stopping.best().epoch, Epoch(2));
  EXPECT_EQ(stopping.best().value, 0.4);
}

TEST(EarlyStopping, LowersTheLearningRateOnAPlateauAndKeepsItLow) {
  EarlyStopping stopping(6, 2, "", false);
  EXPECT_EQ(stopping.RateCuts(Epoch(1)), 0U);
  EXPECT_FALSE(stopping.EarliestEnd().has_value());
  stopping.EndEpoch(Epoch(1), 0.5, {});
  EXPECT_EQ(stopping.EarliestEnd(), Epoch(7));
  stopping.EndEpoch(Epoch(2), 0.6, {});
  EXPECT_EQ(stopping.RateCuts(Epoch(3)), 0U);
  stopping.EndEpoch(Epoch(3), 0.6, {});
  EXPECT_EQ(stopping.RateCuts(Epoch(4)), 1U);
  stopping.EndEpoch(Epoch(4), 0.4, {});  // better at the lower rate, so the rate stays
  EXPECT_EQ(stopping.best().rate_cuts, 1U);
  EXPECT_EQ(stopping.RateCuts(Epoch(5)), 1U);
  stopping.EndEpoch(Epoch(5), 0.5, {});
  stopping.EndEpoch(Epoch(6), 0.5, {});
  EXPECT_EQ(stopping.RateCuts(Epoch(7)), 2U);
  EXPECT_FALSE(stopping.PatienceOver(Epoch(9)));
  EXPECT_TRUE(stopping.PatienceOver(Epoch(10)));

  EarlyStopping successor(6, 2, "", false);  // as restored from a journal
  successor.Restore(stopping.best(), {});
  EXPECT_EQ(successor.RateCuts(Epoch(7)), 2U);
}

TEST(EarlyStopping, JudgesByItsMetricWhicheverWayIsBetter) {
  EarlyStopping auc(1, 0, "auc", true);
  EXPECT_TRUE(auc.EndEpoch(Epoch(1), 0.1, {{"rmse", 0.3}, {"auc", 0.7}}));
  EXPECT_TRUE(auc.EndEpoch(Epoch(2), 0.2, {{"rmse", 0.4}, {"auc", 0.8}}));
  EXPECT_FALSE(auc.EndEpoch(Epoch(3), 0.0, {{"rmse", 0.1}, {"auc", 0.75}}));
  EXPECT_EQ(auc.best().metrics, (EarlyStopping::Metrics{{"rmse", 0.4}, {"auc", 0.8}}));
  EarlyStopping rmse(1, 0, "rmse", false);
  EXPECT_TRUE(rmse.EndEpoch(Epoch(1), 0.1, {{"rmse", 0.3}, {"auc", 0.7}}));
  EXPECT_FALSE(rmse.EndEpoch(Epoch(2), 0.0, {{"rmse", 0.4}, {"auc", 0.8}}));
}

// The first epoch is kept whatever its loss: there must be a best one.
TEST(EarlyStopping, ALossThatIsNoNumberIsNoImprovement) {
  EarlyStopping stopping(3, 0, "", false);
  EXPECT_TRUE(stopping.EndEpoch(Epoch(1), std::nan(""), {}));
  EXPECT_FALSE(stopping.EndEpoch(Epoch(2), std::nan(""), {}));
  EXPECT_TRUE(stopping.EndEpoch(Epoch(3), 7, {})) << "any number is better";
  EXPECT_FALSE(stopping.EndEpoch(Epoch(4), std::nan(""), {}));
  EXPECT_EQ(stopping.best().epoch, Epoch(3));
}

TEST(EarlyStopping, OrdersTheVersionsThatWereJudged) {
  EarlyStopping stopping(1, 0, "", false);
  stopping.SetJudged({4, 5});
  ASSERT_TRUE(stopping.EndEpoch(Epoch(1), 1, {}));
  EXPECT_EQ(stopping.order(), (KeepOrder{1, {4, 5}}));
  stopping.SetDigest("abc");
  stopping.SetJudged({8, 9});
  ASSERT_TRUE(stopping.EndEpoch(Epoch(2), 0.5, {}));
  EXPECT_EQ(stopping.order(), (KeepOrder{2, {8, 9}}));
  EXPECT_EQ(stopping.best().digest, "") << "of other weights";
}

TEST(EarlyStopping, MembersMustKeepTheSameWeightsOfTheBestStep) {
  EarlyStopping stopping(1, 0, "", false);
  ASSERT_TRUE(stopping.EndEpoch(Epoch(1), 1, {}));
  stopping.SetStep(12);
  EXPECT_TRUE(stopping.CheckKept(6, "of an earlier step").ok());
  EXPECT_TRUE(stopping.CheckKept(12, "").ok()) << "it keeps nothing yet";
  EXPECT_TRUE(stopping.CheckKept(12, "abc").ok());
  EXPECT_TRUE(stopping.CheckKept(12, "abc").ok());
  EXPECT_EQ(stopping.best().digest, "abc");
  EXPECT_EQ(stopping.CheckKept(12, "abd").message(),
            "two workers keep different weights of step 12");
}

TEST(EarlyStopping, GoesOnFromWhatAnotherHad) {
  EarlyStopping first(2, 0, "", false);
  first.SetJudged({3});
  ASSERT_TRUE(first.EndEpoch(Epoch(1), 0.5, {}));
  EarlyStopping second(2, 0, "", false);
  second.Restore(first.best(), first.judged());
  EXPECT_EQ(second.order(), first.order());
  EXPECT_FALSE(second.EndEpoch(Epoch(2), 0.6, {}));
  EXPECT_TRUE(second.EndEpoch(Epoch(3), 0.4, {}));
}

}  // namespace
}  // namespace sluice::elastic
