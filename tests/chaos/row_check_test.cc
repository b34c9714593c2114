#include "tests/chaos/row_check.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::chaos {
namespace {

// Predictions of a model that has applied each row the given number of times.
class Model {
 public:
  explicit Model(double bias) : bias_(bias) { Add(0, true); }
  void Add(double steps, bool validation = false) {
    ScoredRow row;
    row.id = static_cast<int64_t>(rows_.size());
    row.validation = validation;
    row.label = row.id % 2 == 1;
    const double score = bias_ + steps * kRowRate * (row.label ? 1 : -1);
    // The network computes with floats.
    row.probability = static_cast<double>(static_cast<float>(1 / (1 + std::exp(-score))));
    rows_.push_back(row);
  }
  const std::vector<ScoredRow>& rows() const { return rows_; }

 private:
  const double bias_;
  std::vector<ScoredRow> rows_;
};

TEST(RowCheck, FindsALostAndARepeatedRowAmongThoseOfASynchronousJob) {
  for (const double bias : {0.0, -0.4, 1.3}) {
    Model model(bias);
    for (const double steps : {3, 3, 2, 3, 4, 3}) {
      model.Add(steps);
    }
    const RowFindings findings = CheckRows(model.rows(), {true, 3, 0});
    EXPECT_EQ(findings.rows, 6);
    EXPECT_EQ(findings.validation_rows, 1);
    EXPECT_EQ(findings.lost, 1) << Describe(findings);
    EXPECT_EQ(findings.repeated, 1) << Describe(findings);
    EXPECT_EQ(findings.wrong, 0) << Describe(findings);
  }
}

TEST(RowCheck, AStaleGradientIsOneTimeAndTwoStaleOnesAreTwo) {
  for (const double bias : {0.0, -0.4, 1.3}) {
    Model model(bias);
    for (const double staleness : {1, 2, 3, 7, 21}) {
      model.Add(1 / staleness);
    }
    EXPECT_TRUE(CheckRows(model.rows(), {false, 1, 0}).good());
    EXPECT_EQ(CheckRows(model.rows(), {false, 1, 0}).stalest, 21);
    EXPECT_EQ(CheckRows(model.rows(), {false, 1, 20}).too_stale, 1);
    model.Add(0);
    model.Add(1. / 2 + 1. / 3);
    model.Add(1. / 5 + 1. / 7);
    model.Add(1 + 1. / 4);
    const RowFindings findings = CheckRows(model.rows(), {false, 1, 0});
    EXPECT_EQ(findings.lost, 1) << Describe(findings);
    EXPECT_EQ(findings.repeated, 3) << Describe(findings);
  }
}

TEST(RowCheck, SeveralEpochsOfStaleGradientsHaveBounds) {
  Model model(0.2);
  model.Add(3);
  model.Add(0.7);
  EXPECT_TRUE(CheckRows(model.rows(), {false, 3, 0}).good());
  model.Add(0);
  model.Add(3.1);
  const RowFindings findings = CheckRows(model.rows(), {false, 3, 0});
  EXPECT_EQ(findings.lost, 1);
  EXPECT_EQ(findings.repeated, 1);
}

TEST(RowCheck, FindsAWeightThatIsNoRowsAndATrainedValidationRow) {
  Model model(0.2);
  model.Add(1);
  model.Add(-1);
  model.Add(0.6);
  model.Add(1, true);
  const RowFindings findings = CheckRows(model.rows(), {true, 1, 0});
  EXPECT_EQ(findings.wrong, 3) << Describe(findings);
}

}  // namespace
}  // namespace sluice::chaos
