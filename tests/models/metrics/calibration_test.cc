#include "models/metrics/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "models/metrics/metric.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

float Sigmoid(double x) {
  return static_cast<float>(1 / (1 + std::exp(-x)));
}

// Rows whose true log odds are x, and an overconfident model that predicts 3 x + 1.
struct Overconfident {
  std::vector<double> scores, labels, truth;
  explicit Overconfident(size_t rows) {
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<float> uniform;
    for (size_t i = 0; i < rows; ++i) {
      const double x = normal(random);
      scores.push_back(Sigmoid(3 * x + 1));
      truth.push_back(Sigmoid(x));
      labels.push_back(uniform(random) < truth.back() ? 1.0F : 0.0F);
    }
  }
};

double LogLossOf(const std::vector<double>& scores, const std::vector<double>& labels) {
  Metrics metrics(Task::kBinary, 1);
  metrics.Add(scores, labels, {});
  return metrics.Value("log_loss");
}

TEST(Calibration, PlattFindsTheCurveThatWasMissed) {
  const Overconfident rows(20000);
  CalibrationFit fit(1);
  fit.Add(rows.scores, rows.labels, {});
  Calibration calibration;
  calibration.set_method("platt");
  fit.Fit(&calibration);
  // x = (s - 1) / 3 for log odds s.
  EXPECT_NEAR(calibration.curves(0).slope(), 1.0 / 3, 0.02);
  EXPECT_NEAR(calibration.curves(0).offset(), -1.0 / 3, 0.04);
}

TEST(Calibration, NearlyCertainScoresStayOnTheirSide) {
  constexpr double kNearlyNone = 1e-9;
  std::vector<double> scores, labels;
  for (int i = 0; i < 1000; ++i) {
    scores.insert(scores.end(), {kNearlyNone, 1 - kNearlyNone, 0.5});
    labels.insert(labels.end(), {0, 1, i % 2 == 0 ? 0.0 : 1.0});
  }
  for (const char* method : {"platt", "isotonic"}) {
    CalibrationFit fit(1);
    fit.Add(scores, labels, {});
    Calibration calibration;
    calibration.set_method(method);
    fit.Fit(&calibration);
    std::vector<double> calibrated = {kNearlyNone, 1 - kNearlyNone};
    Calibrate(calibration, 1, calibrated);
    EXPECT_LT(calibrated[0], 0.05) << method;
    EXPECT_GT(calibrated[1], 0.95) << method;
  }
}

TEST(Calibration, BothMethodsComeNearTheTruthOnOtherRows) {
  const Overconfident all(30000);
  const auto part = [](const std::vector<double>& of, size_t begin, size_t end) {
    return std::vector<double>(of.begin() + static_cast<int64_t>(begin),
                               of.begin() + static_cast<int64_t>(end));
  };
  const std::vector<double> labels = part(all.labels, 20000, 30000);
  const double truth = LogLossOf(part(all.truth, 20000, 30000), labels);
  EXPECT_GT(LogLossOf(part(all.scores, 20000, 30000), labels), truth + 0.1);
  for (const char* method : {"platt", "isotonic"}) {
    CalibrationFit fit(1);
    fit.Add(part(all.scores, 0, 20000), part(all.labels, 0, 20000), {});
    Calibration calibration;
    calibration.set_method(method);
    fit.Fit(&calibration);
    ASSERT_TRUE(CheckCalibration(calibration, 1).ok());
    std::vector<double> calibrated = part(all.scores, 20000, 30000);
    Calibrate(calibration, 1, calibrated);
    EXPECT_LT(LogLossOf(calibrated, labels), truth + 0.01) << method;
  }
}

TEST(Calibration, OfSeveralClassesAddsUpToOne) {
  CalibrationFit fit(3);
  const std::vector<double> scores = {0.7F, 0.2F, 0.1F, 0.6F, 0.3F, 0.1F, 0.2F, 0.5F, 0.3F};
  fit.Add(scores, std::vector<double>{0, 1, 1}, {});
  for (const char* method : {"platt", "isotonic"}) {
    Calibration calibration;
    calibration.set_method(method);
    fit.Fit(&calibration);
    ASSERT_TRUE(CheckCalibration(calibration, 3).ok()) << method;
    std::vector<double> calibrated = scores;
    Calibrate(calibration, 3, calibrated);
    for (size_t row = 0; row < 3; ++row) {
      EXPECT_NEAR(calibrated[3 * row] + calibrated[3 * row + 1] + calibrated[3 * row + 2], 1, 1e-6);
    }
    // No row has the third class: its scores change only by the normalisation.
    EXPECT_EQ(calibration.curves(2).slope(), 1);
  }
}

TEST(Calibration, NeverSaysNeverNorAlways) {
  CalibrationFit fit(1);
  fit.Add(std::vector<double>{0.1F, 0.2F, 0.8F, 0.9F}, std::vector<double>{0, 0, 1, 1}, {});
  Calibration calibration;
  calibration.set_method("isotonic");
  fit.Fit(&calibration);
  std::vector<double> scores = {0, 0.15F, 0.5F, 1};
  Calibrate(calibration, 1, scores);
  EXPECT_GT(scores[0], 0.05F);
  EXPECT_LT(scores[3], 0.95F);
  EXPECT_GT(scores[2], scores[1]);
}

TEST(Calibration, DamagedCurvesAreRefused) {
  Calibration calibration;
  EXPECT_TRUE(CheckCalibration(calibration, 2).ok());
  CalibrationCurve* curve = calibration.add_curves();
  curve->set_slope(1);
  EXPECT_TRUE(CheckCalibration(calibration, 1).ok());
  EXPECT_FALSE(CheckCalibration(calibration, 2).ok());
  curve->add_scores(0.5);
  EXPECT_FALSE(CheckCalibration(calibration, 1).ok());
  curve->add_probabilities(0.5);
  EXPECT_TRUE(CheckCalibration(calibration, 1).ok());
  curve->add_scores(0.5);
  curve->add_probabilities(0.6);
  EXPECT_FALSE(CheckCalibration(calibration, 1).ok()) << "scores do not rise";
  curve->set_scores(1, 0.6);
  curve->set_probabilities(1, std::nan(""));
  EXPECT_FALSE(CheckCalibration(calibration, 1).ok());
}

}  // namespace
}  // namespace sluice::models
