#include "models/networks/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/models/networks/network_specs.h"

namespace sluice::models {
namespace {

using ::testing::ElementsAre;

Loss MakeLoss(const ModelSpec& spec) {
  auto made = Loss::Make(spec);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return std::move(made).value();
}

ModelSpec NumberSpec(const std::string& loss, double mean = 0, double scale = 1) {
  ModelSpec spec = Spec("LinearRegressor");
  SetNumberLabel(&spec, mean, scale);
  spec.set_loss(loss);
  return spec;
}
ModelSpec ClassSpec(const std::string& loss, int classes) {
  ModelSpec spec = Spec("LinearClassifier");
  SetClasses(&spec, classes);
  spec.set_loss(loss);
  return spec;
}

double LossAt(const ModelSpec& spec, float logit, float label) {
  Loss loss = MakeLoss(spec);
  return loss.Compute(1, &logit, &label, nullptr, nullptr).loss;
}

std::vector<double> PredictionsOf(const Loss& loss, std::vector<float> logits) {
  std::vector<double> predictions;
  loss.ToPredictions(logits.size() / loss.outputs(), logits.data(), &predictions);
  return predictions;
}

TEST(LossTest, ValuesByHand) {
  EXPECT_NEAR(LossAt(ClassSpec("logistic", 2), 0, 1), std::log(2), 1e-6);
  EXPECT_NEAR(LossAt(ClassSpec("logistic", 2), 2, 0), std::log1p(std::exp(2.0)), 1e-6);
  EXPECT_NEAR(LossAt(ClassSpec("hinge", 2), 0.25f, 1), 0.75, 1e-6);
  EXPECT_NEAR(LossAt(ClassSpec("hinge", 2), 0.25f, 0), 1.25, 1e-6);
  EXPECT_NEAR(LossAt(ClassSpec("SquaredHinge", 2), 0.5f, 0), 2.25, 1e-6);
  EXPECT_NEAR(LossAt(NumberSpec("squared"), 3, 1), 4, 1e-6);
  EXPECT_NEAR(LossAt(NumberSpec("mae"), 3, 1), 2, 1e-6);
  EXPECT_NEAR(LossAt(NumberSpec("Huber"), 1.5f, 1), 0.125, 1e-6);
  EXPECT_NEAR(LossAt(NumberSpec("Huber"), 4, 1), 2.5, 1e-6);
  EXPECT_NEAR(LossAt(NumberSpec("LogCosh"), 2, 0), std::log(std::cosh(2.0)), 1e-6);
}

// With labels as they are and a mean of 1, so that a logit is the logarithm of the rate.
TEST(LossTest, GammaAndTweedieByHand) {
  ModelSpec gamma = NumberSpec("Gamma", 1, 1);
  ModelSpec tweedie = NumberSpec("tweedie", 1, 1);
  SetNumber(&tweedie, "loss.variance_power", 1.25);
  const double z = 0.5, y = 3;  // the batch holds (y - mean) / scale
  EXPECT_NEAR(LossAt(gamma, 0.5F, 2), y * std::exp(-z) + z, 1e-6);
  EXPECT_NEAR(LossAt(tweedie, 0.5F, 2), y * std::exp(-0.25 * z) / 0.25 + std::exp(0.75 * z) / 0.75,
              1e-5);
  EXPECT_NEAR(LossAt(tweedie, 0.5F, -1), std::exp(0.75 * z) / 0.75, 1e-6);  // y = 0
  SetNumber(&tweedie, "loss.variance_power", 2.5);
  EXPECT_FALSE(Loss::Make(tweedie).ok());
}

// The best constant is the mean, and a prediction is a number again.
TEST(LossTest, SlopesOfGammaAndTweedieVanishAtTheMean) {
  for (const char* name : {"Poisson", "Gamma", "Tweedie"}) {
    Loss loss = MakeLoss(NumberSpec(name, 4, 2));
    const std::vector<float> labels = {-1, 0, 1};  // 2, 4, 6
    std::vector<float> logits(3, 0), gradient(3);
    loss.Compute(3, logits.data(), labels.data(), nullptr, gradient.data());
    EXPECT_NEAR(gradient[0] + gradient[1] + gradient[2], 0, 1e-6) << name;
    EXPECT_GT(gradient[0], 0) << name;
    EXPECT_NEAR(PredictionsOf(loss, logits)[0], 4, 1e-5) << name;
    for (const float z : {-0.7F, 0.4F}) {
      float slope = 0;
      const float label = 1;
      loss.Compute(1, &z, &label, nullptr, &slope);
      const double step = 1e-2;
      const float above = z + 1e-2F, below = z - 1e-2F;
      const double difference = (loss.Compute(1, &above, &label, nullptr, nullptr).loss -
                                 loss.Compute(1, &below, &label, nullptr, nullptr).loss) /
                                (2 * step);
      EXPECT_NEAR(slope, difference, 1e-3) << name;
    }
  }
}

ModelSpec QuantileSpec(const std::vector<double>& quantiles, double mean = 0, double scale = 1) {
  ModelSpec spec = NumberSpec("quantile", mean, scale);
  Attribute* attribute = spec.add_attributes();
  attribute->set_name("model.quantiles");
  attribute->mutable_numbers()->mutable_values()->Assign(quantiles.begin(), quantiles.end());
  return spec;
}

TEST(LossTest, QuantilesByHand) {
  Loss median = MakeLoss(QuantileSpec({0.5}));
  EXPECT_EQ(median.outputs(), 1U);
  EXPECT_NEAR(LossAt(QuantileSpec({0.5}), 3, 1), 1, 1e-6);
  EXPECT_NEAR(LossAt(QuantileSpec({0.9}), 1, 3), 0.9 * 2, 1e-6);
  EXPECT_NEAR(LossAt(QuantileSpec({0.9}), 3, 1), 0.1 * 2, 1e-6);
  // The second output is a step above the first: softplus(0) = log 2.
  Loss two = MakeLoss(QuantileSpec({0.25, 0.75}, 100, 10));
  ASSERT_EQ(two.outputs(), 2U);
  std::vector<float> logits = {1, 0};
  const float label = 2;
  const double second = 1 + std::log(2.0);
  EXPECT_NEAR(two.Compute(1, logits.data(), &label, nullptr, nullptr).loss,
              (0.25 * 1 + 0.75 * (2 - second)) / 2, 1e-6);
  const std::vector<double> predictions = PredictionsOf(two, logits);
  EXPECT_NEAR(predictions[0], 110, 1e-4);
  EXPECT_NEAR(predictions[1], 100 + 10 * second, 1e-4);
}

TEST(LossTest, SlopesOfQuantilesAreDifferences) {
  Loss loss = MakeLoss(QuantileSpec({0.1, 0.3, 0.5, 0.95}));
  const std::vector<float> labels = {0.3F, -2, 4}, weights = {1, 0.5F, 2};
  std::vector<float> logits = {-1, 0.2F, -0.4F, 1, 0.5F, -3, 2, 0.1F, 0, 0, 0, 0};
  std::vector<float> gradient(logits.size());
  const LossSum sum =
      loss.Compute(3, logits.data(), labels.data(), weights.data(), gradient.data());
  EXPECT_NEAR(sum.weight, 3.5, 1e-6);
  constexpr float kStep = 1e-3F;
  for (size_t i = 0; i < logits.size(); ++i) {
    std::vector<float> above = logits, below = logits;
    above[i] += kStep;
    below[i] -= kStep;
    const double difference =
        (loss.Compute(3, above.data(), labels.data(), weights.data(), nullptr).loss -
         loss.Compute(3, below.data(), labels.data(), weights.data(), nullptr).loss) /
        static_cast<double>(above[i] - below[i]) / sum.weight;
    EXPECT_NEAR(gradient[i], difference, 2e-3) << i;
  }
}

TEST(LossTest, QuantilesNeverCross) {
  Loss loss = MakeLoss(QuantileSpec({0.1, 0.5, 0.9}, 5, 1e-3));
  for (const float z : {-300.0F, -20.0F, 0.0F, 20.0F, 300.0F}) {
    const std::vector<double> predictions = PredictionsOf(loss, {z, -z, z});
    EXPECT_LE(predictions[0], predictions[1]) << z;
    EXPECT_LE(predictions[1], predictions[2]) << z;
    EXPECT_TRUE(std::isfinite(predictions[2])) << z;
  }
}

TEST(LossTest, QuantilesThatMakeNoSenseAreRefused) {
  for (const std::vector<double>& wrong :
       {std::vector<double>{}, {0}, {1}, {0.5, 0.5}, {0.9, 0.1}, {-1, 0.5}, {NAN}}) {
    EXPECT_FALSE(Loss::Make(QuantileSpec(wrong)).ok());
  }
  ModelSpec vectors = QuantileSpec({0.5});
  vectors.mutable_features()->mutable_label()->set_kind(LabelPlan::VECTOR);
  vectors.mutable_features()->mutable_label()->set_width(2);
  EXPECT_FALSE(Loss::Make(vectors).ok());
}

TEST(LossTest, HugeLogitsStayFinite) {
  EXPECT_NEAR(LossAt(ClassSpec("logistic", 2), -500, 1), 500, 1e-3);
  EXPECT_NEAR(LossAt(NumberSpec("LogCosh"), 500, 0), 500 - std::log(2), 1e-3);
  Loss softmax = MakeLoss(ClassSpec("", 3));
  const std::vector<float> logits = {1000, -1000, 999};
  const float label = 1;
  std::vector<float> gradient(3);
  EXPECT_NEAR(softmax.Compute(1, logits.data(), &label, nullptr, gradient.data()).loss, 2000.3,
              0.1);
  EXPECT_NEAR(gradient[1], -1, 1e-6);
}

TEST(LossTest, HuberDeltaIsAnAttribute) {
  ModelSpec spec = NumberSpec("Huber");
  SetNumber(&spec, "loss.delta", 2);
  EXPECT_NEAR(LossAt(spec, 5, 0), 2 * (5 - 1), 1e-6);
}

TEST(LossTest, WeightsAreSharesOfTheMean) {
  Loss loss = MakeLoss(NumberSpec("squared"));
  const std::vector<float> logits = {1, 2, 3}, labels = {0, 0, 0}, weights = {1, 0, 3};
  std::vector<float> gradient(3);
  const LossSum sum =
      loss.Compute(3, logits.data(), labels.data(), weights.data(), gradient.data());
  EXPECT_NEAR(sum.loss, 1 + 27, 1e-6);
  EXPECT_NEAR(sum.weight, 4, 1e-6);
  EXPECT_NEAR(gradient[0], 2.0 / 4, 1e-6);
  EXPECT_EQ(gradient[1], 0);
  EXPECT_NEAR(gradient[2], 6.0 * 3 / 4, 1e-6);
}

TEST(LossTest, ABatchOfWeightZeroMovesNothing) {
  Loss loss = MakeLoss(NumberSpec("squared"));
  const std::vector<float> logits = {1, 2}, labels = {0, 0}, weights = {0, 0};
  std::vector<float> gradient(2, 9);
  loss.Compute(2, logits.data(), labels.data(), weights.data(), gradient.data());
  EXPECT_EQ(gradient, (std::vector<float>{0, 0}));
}

TEST(LossTest, PredictionsComeInTheLabelsUnit) {
  EXPECT_THAT(PredictionsOf(MakeLoss(NumberSpec("squared", 100, 10)), {0, 1}),
              ElementsAre(100, 110));
  EXPECT_THAT(PredictionsOf(MakeLoss(ClassSpec("", 2)), {0, 0}), ElementsAre(0.5, 0.5));
  EXPECT_NEAR(PredictionsOf(MakeLoss(NumberSpec("Poisson", 40, 3)), {0})[0], 40, 1e-4);
}

// 32 bits would round them to 1e9.
TEST(LossTest, PredictionsBesideALargeMeanDiffer) {
  for (const char* name : {"squared", "MeanAbsoluteError", "Huber"}) {
    EXPECT_THAT(PredictionsOf(MakeLoss(NumberSpec(name, 1e9, 0.25)), {-1, 0, 0.5F}),
                ElementsAre(1e9 - 0.25, 1e9, 1e9 + 0.125))
        << name;
  }
  const std::vector<double> counts =
      PredictionsOf(MakeLoss(NumberSpec("Poisson", 1e9, 1)), {0, 0x1p-30F});
  EXPECT_EQ(counts[0], 1e9);
  EXPECT_NEAR(counts[1], 1e9 + 1e9 * 0x1p-30, 1e-5);
  const std::vector<double> quantiles =
      PredictionsOf(MakeLoss(QuantileSpec({0.25, 0.75}, 1e9, 0.25)), {1, 0});
  EXPECT_EQ(quantiles[0], 1e9 + 0.25);
  EXPECT_NEAR(quantiles[1], 1e9 + 0.25 * (1 + std::log(2.0)), 1e-6);
}

TEST(LossTest, PredictionsAreOfAnyMagnitude) {
  EXPECT_THAT(PredictionsOf(MakeLoss(NumberSpec("squared", 2e300, 1e300)), {-1, 1}),
              ElementsAre(1e300, 3e300));
  EXPECT_THAT(PredictionsOf(MakeLoss(NumberSpec("squared", 2e-300, 1e-300)), {-1, 1}),
              ElementsAre(1e-300, 3e-300));
}

TEST(LossTest, KerasNamesAnyCase) {
  EXPECT_EQ(MakeLoss(ClassSpec("BINARYCROSSENTROPY", 2)).kind(), Loss::Kind::kLogistic);
  EXPECT_EQ(MakeLoss(ClassSpec("SparseCategoricalCrossentropy", 5)).outputs(), 5u);
  EXPECT_EQ(MakeLoss(NumberSpec("MeanSquaredError")).kind(), Loss::Kind::kSquared);
  EXPECT_EQ(MakeLoss(ClassSpec("softmax", 2)).outputs(), 1u) << "two classes need one output";
}

TEST(LossTest, OneClassIsNoLabel) {
  const auto made = Loss::Make(ClassSpec("", 1));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().message(), "label 'y' has 1 class: a classifier needs two or more");
}

TEST(LossTest, PredictionsOfWhatIsNeverNegativeAreNot) {
  for (const bool never : {false, true}) {
    ModelSpec spec;
    SetNumberLabel(&spec, 3, 2);
    spec.mutable_features()->mutable_label()->set_never_negative(never);
    EXPECT_THAT(PredictionsOf(Loss::Make(spec).value(), {-2, -1, 1}),
                ElementsAre(never ? 0.0 : -1.0, 1, 5));
  }
}

}  // namespace
}  // namespace sluice::models
