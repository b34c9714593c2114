#include "elastic/master/progress_meter.h"

#include <gtest/gtest.h>

#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

ProgressMeter::Totals TotalsOf(int64_t rows, double loss) {
  ProgressMeter::Totals totals;
  totals.rows = rows;
  totals.weight = static_cast<double>(rows);
  totals.loss = loss;
  return totals;
}

TEST(ProgressMeter, SaysRateAndLossSinceTheLastMeasurement) {
  ProgressMeter meter(At(10));
  meter.Measure(TotalsOf(100, 50), At(12));
  EXPECT_DOUBLE_EQ(meter.rows_per_second(), 50);
  EXPECT_DOUBLE_EQ(meter.loss(), 0.5);
  meter.Measure(TotalsOf(400, 80), At(14));
  EXPECT_DOUBLE_EQ(meter.rows_per_second(), 100) << "between 50 and 150";
  EXPECT_DOUBLE_EQ(meter.loss(), 0.1);
  meter.Measure(TotalsOf(400, 80), At(16));
  EXPECT_DOUBLE_EQ(meter.rows_per_second(), 50);
  EXPECT_DOUBLE_EQ(meter.loss(), 0.1) << "of the last rows that were trained";
}

// Nobody knows how long it lasts; what is left of the training is what it was.
TEST(ProgressMeter, AStallIsNoPartOfThePace) {
  ProgressMeter meter(At(0));
  meter.Measure(TotalsOf(100, 50), At(1));
  for (int second = 2; second < 60; ++second) {
    meter.Measure(TotalsOf(100, 50), At(second));
  }
  EXPECT_LT(meter.rows_per_second(), 1e-6);
  EXPECT_DOUBLE_EQ(meter.pace(), 100);
  meter.Measure(TotalsOf(300, 80), At(60));
  EXPECT_DOUBLE_EQ(meter.pace(), 150);
}

TEST(ProgressMeter, AMomentSaysNothing) {
  ProgressMeter meter(At(0));
  meter.Measure(TotalsOf(100, 50), At(0));
  EXPECT_EQ(meter.rows_per_second(), 0);
  meter.Measure(TotalsOf(10, 5), At(0.1));
  EXPECT_DOUBLE_EQ(meter.rows_per_second(), 100) << "better than none";
  meter.Measure(TotalsOf(1000, 5), At(0.2));
  EXPECT_DOUBLE_EQ(meter.rows_per_second(), 100);
  meter.Measure(TotalsOf(1000, 5), At(1.1));  // 990 rows in a second
  EXPECT_DOUBLE_EQ(meter.rows_per_second(), 545);
}

TEST(ProgressMeter, AnEpochsLossIsTheMeanOverItsRows) {
  ProgressMeter meter(At(0));
  meter.EndEpoch(TotalsOf(100, 50));
  EXPECT_DOUBLE_EQ(meter.epoch_loss(), 0.5);
  meter.EndEpoch(TotalsOf(200, 70));
  EXPECT_DOUBLE_EQ(meter.epoch_loss(), 0.2);
  EXPECT_EQ(meter.epoch_start().rows, 200);
  meter.EndEpoch(TotalsOf(200, 70));
  EXPECT_DOUBLE_EQ(meter.epoch_loss(), 0) << "nothing was trained";
}

TEST(ProgressMeter, WhatOthersTrainedIsNoPartOfItsRate) {
  ProgressMeter meter(At(0));
  meter.Restore(TotalsOf(1000, 500), 0.5);
  meter.StartFrom(TotalsOf(1100, 510), At(100));
  meter.Measure(TotalsOf(1120, 514), At(102));
  EXPECT_DOUBLE_EQ(meter.rows_per_second(), 10);
  EXPECT_DOUBLE_EQ(meter.loss(), 0.2);
  EXPECT_DOUBLE_EQ(meter.epoch_loss(), 0.5);
  meter.EndEpoch(TotalsOf(1200, 520));
  EXPECT_DOUBLE_EQ(meter.epoch_loss(), 0.1);
}

TEST(ProgressMeter, BeginsAgainWithTheFirstRow) {
  ProgressMeter meter(At(0));
  meter.Measure(TotalsOf(1000, 500), At(10));
  meter.EndEpoch(TotalsOf(1000, 500));
  meter.BeginAgain();
  meter.Measure(TotalsOf(1000, 500), At(20));
  EXPECT_DOUBLE_EQ(meter.rows_per_second(), 100);
  meter.EndEpoch(TotalsOf(2000, 1500));
  EXPECT_DOUBLE_EQ(meter.epoch_loss(), 0.75);
}

}  // namespace
}  // namespace sluice::elastic
