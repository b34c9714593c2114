#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/models/networks/network_rows.h"

namespace sluice::models {
namespace {

// 0 0 -> 0, 0 1 -> 1, 1 0 -> 1, 1 1 -> 0, with noise in the numbers.
FeatureBatch XorRows(size_t rows, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> noise(0, 0.1f);
  FeatureBatch batch;
  batch.rows = rows;
  batch.dense_width = 2;
  for (size_t r = 0; r < rows; ++r) {
    const bool a = random() % 2 == 0;
    const bool b = random() % 2 == 0;
    batch.dense.push_back((a ? 1.0f : 0.0f) + noise(random));
    batch.dense.push_back((b ? 1.0f : 0.0f) + noise(random));
    batch.labels.push_back(a != b ? 1 : 0);
  }
  return batch;
}

double NetworkAccuracy(Network* network, ParameterStore* store, const FeatureBatch& batch) {
  std::vector<double> predictions;
  network->Predict(batch, store->View(batch), &predictions);
  size_t right = 0;
  for (size_t r = 0; r < batch.rows; ++r) {
    right += (predictions[r] > 0.5f) == (batch.labels[r] > 0.5f) ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(batch.rows);
}

TEST(TrainingTest, DeepLearnsExclusiveOrAndLinearCannot) {
  ModelSpec deep = DeepSpec({16, 8});
  ModelSpec linear = Spec("LinearClassifier");
  for (ModelSpec* spec : {&deep, &linear}) {
    AddNumber(spec, "a");
    AddNumber(spec, "b");
    SetClasses(spec, 2);
  }
  const FeatureBatch test = XorRows(1000, 77);
  const auto accuracy = [&](const ModelSpec& spec) {
    const auto network = MakeNetwork(spec);
    ParameterStore store(network.get(), 5, "Adam", 0.01);
    for (int step = 1; step <= 300; ++step) {
      store.Train(XorRows(64, static_cast<uint32_t>(step)), step);
    }
    return NetworkAccuracy(network.get(), &store, test);
  };
  EXPECT_GT(accuracy(deep), 0.98);
  EXPECT_LT(accuracy(linear), 0.8);
}

TEST(TrainingTest, EmbeddingsLearnAPairwiseRule) {
  // The label depends on two categories together: one alone reveals nothing.
  ModelSpec spec = DeepSpec({16});
  AddCategory(&spec, "c", 8, 4);
  AddCategory(&spec, "d", 8, 4);
  SetClasses(&spec, 2);
  const auto rows = [](size_t n, uint32_t seed) {
    std::mt19937 random(seed);
    FeatureBatch batch;
    batch.rows = n;
    batch.slots.resize(2);
    for (size_t r = 0; r < n; ++r) {
      const auto c = static_cast<uint32_t>(random() % 8);
      const auto d = static_cast<uint32_t>(random() % 8);
      batch.slots[0].ids.push_back(c);
      batch.slots[1].ids.push_back(d);
      batch.labels.push_back((c ^ d) % 2 == 0 ? 1 : 0);
    }
    return batch;
  };
  const auto network = MakeNetwork(spec);
  ParameterStore store(network.get(), 5, "Adam", 0.01);
  for (int step = 1; step <= 400; ++step) {
    store.Train(rows(64, static_cast<uint32_t>(step)), step);
  }
  EXPECT_GT(NetworkAccuracy(network.get(), &store, rows(1000, 999)), 0.98);
}

TEST(TrainingTest, LinearFindsTheTrueWeightsInTheLabelsOwnScale) {
  ModelSpec spec = Spec("LinearRegressor");
  AddNumber(&spec, "a");
  AddNumber(&spec, "b");
  SetNumberLabel(&spec, 100, 10);  // y = 100 + 10 (2 a - 3 b)
  const auto network = MakeNetwork(spec);
  ParameterStore store(network.get(), 1, "SGD", 0.1);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int step = 1; step <= 300; ++step) {
    FeatureBatch batch;
    batch.rows = 32;
    batch.dense_width = 2;
    for (size_t r = 0; r < batch.rows; ++r) {
      const float a = normal(random);
      const float b = normal(random);
      batch.dense.insert(batch.dense.end(), {a, b});
      batch.labels.push_back(2 * a - 3 * b);
    }
    store.Train(batch, step);
  }
  FeatureBatch probe;
  probe.rows = 1;
  probe.dense_width = 2;
  probe.dense = {1, 1};
  std::vector<double> prediction;
  network->Predict(probe, store.View(probe), &prediction);
  EXPECT_NEAR(prediction[0], 90, 0.01);
}

TEST(TrainingTest, PoissonPredictsRatesInTheLabelsOwnScale) {
  ModelSpec spec = Numbers(Spec("LinearRegressor"), "Poisson");
  SetNumberLabel(&spec, 50, 7);
  AddNumber(&spec, "a");
  const auto network = MakeNetwork(spec);
  ParameterStore store(network.get(), 1, "Adam", 0.02);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int step = 1; step <= 600; ++step) {
    FeatureBatch batch;
    batch.rows = 64;
    batch.dense_width = 1;
    for (size_t r = 0; r < batch.rows; ++r) {
      const float a = normal(random);
      const float y = static_cast<float>(
          std::poisson_distribution<int>(std::exp(3.5 + 0.4 * static_cast<double>(a)))(random));
      batch.dense.push_back(a);
      batch.labels.push_back((y - 50) / 7);
    }
    store.Train(batch, step);
  }
  FeatureBatch probe;
  probe.rows = 1;
  probe.dense_width = 1;
  probe.dense = {1};
  std::vector<double> prediction;
  network->Predict(probe, store.View(probe), &prediction);
  EXPECT_NEAR(prediction[0], std::exp(3.9), 2.5);
}

}  // namespace
}  // namespace sluice::models
