#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/model.h"
#include "tests/models/network_specs.h"

namespace sluice::models {
namespace {

NetworkWeights Sample() {
  NetworkWeights weights;
  weights.dense = {{1.5f, -2.25f, 3e-30f}, {}, {7}};
  weights.tables.resize(2);
  weights.tables[0].ids = {0, 5, int64_t{1} << 40};
  weights.tables[0].values = {1, 2, 3, 4, 5, 6};
  return weights;
}

TEST(WeightsTest, WhatIsSavedIsLoaded) {
  const NetworkWeights saved = Sample();
  const auto loaded = LoadWeights(SaveWeights(saved));
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(loaded->dense, saved.dense);
  ASSERT_EQ(loaded->tables.size(), 2u);
  EXPECT_EQ(loaded->tables[0].ids, saved.tables[0].ids);
  EXPECT_EQ(loaded->tables[0].values, saved.tables[0].values);
  EXPECT_TRUE(loaded->tables[1].ids.empty());
}

TEST(WeightsTest, EveryCutAndEveryFlippedByteIsFound) {
  const std::string bytes = SaveWeights(Sample());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(LoadWeights(std::string_view(bytes).substr(0, n)).ok()) << n;
    std::string damaged = bytes;
    damaged[n] = static_cast<char>(damaged[n] ^ 0x10);
    EXPECT_FALSE(LoadWeights(damaged).ok()) << n;
  }
  EXPECT_FALSE(LoadWeights(bytes + "x").ok());
  EXPECT_FALSE(LoadWeights("").ok());
  EXPECT_NE(LoadWeights("nonsense").status().message().find("damaged"), std::string::npos);
}

class CheckShapeTest : public testing::Test {
 protected:
  CheckShapeTest() {
    ModelSpec spec = DeepSpec({4});
    AddNumber(&spec, "x");
    AddCategory(&spec, "c", 10, 3);
    SetClasses(&spec, 2);
    network_ = MakeNetwork(spec);
    for (const DenseTensor& tensor : network_->dense()) {
      weights_.dense.emplace_back(tensor.size());
    }
    weights_.tables.resize(1);
    weights_.tables[0].ids = {0, 9};
    weights_.tables[0].values.resize(6);
  }
  std::unique_ptr<Network> network_;
  NetworkWeights weights_;
};

TEST_F(CheckShapeTest, TheRightShapePasses) {
  EXPECT_TRUE(CheckShape(weights_, *network_).ok());
}

TEST_F(CheckShapeTest, WrongTensorIsNamed) {
  weights_.dense[0].pop_back();
  const Status status = CheckShape(weights_, *network_);
  EXPECT_NE(status.message().find("deep/0/kernel"), std::string::npos) << status.message();
}

TEST_F(CheckShapeTest, IdsOutsideTheTableUnorderedIdsAndTornRowsFail) {
  weights_.tables[0].ids = {0, 10};
  EXPECT_FALSE(CheckShape(weights_, *network_).ok());
  weights_.tables[0].ids = {-1, 9};
  EXPECT_FALSE(CheckShape(weights_, *network_).ok());
  weights_.tables[0].ids = {9, 9};
  EXPECT_FALSE(CheckShape(weights_, *network_).ok());
  weights_.tables[0].ids = {0, 9};
  weights_.tables[0].values.pop_back();
  EXPECT_FALSE(CheckShape(weights_, *network_).ok());
  weights_.tables.clear();
  EXPECT_FALSE(CheckShape(weights_, *network_).ok());
}

TEST(InitializeTest, ValuesDependOnSeedNameAndPlaceAlone) {
  const DenseTensor tensor = {"deep/0/kernel", {40, 25}, false, "glorot_uniform"};
  std::vector<float> a(1000), b(1000), c(1000);
  InitializeDense(tensor, 1, a);
  InitializeDense(tensor, 1, b);
  EXPECT_EQ(a, b);
  InitializeDense(tensor, 2, c);
  EXPECT_NE(a, c);
  DenseTensor other = tensor;
  other.name = "deep/1/kernel";
  InitializeDense(other, 1, c);
  EXPECT_NE(a, c);
  const float limit = std::sqrt(6.0f / 65.0f);
  double sum = 0, squares = 0;
  for (const float value : a) {
    ASSERT_LE(std::fabs(value), limit);
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 1000, 0, 0.02);
  EXPECT_NEAR(squares / 1000, 6.0 / 65.0 / 3.0, 0.003);
}

TEST(InitializeTest, RowsAreNormalAndIndependentOfEachOther) {
  const EmbeddingTable table = {"embedding/c", int64_t{1} << 31, 5, false, ""};
  std::vector<float> row(5), again(5);
  double sum = 0, squares = 0, fourth = 0, neighbours = 0;
  constexpr int kRows = 20000;
  float last = 0;
  for (int64_t id = 0; id < kRows; ++id) {
    InitializeRow(table, 3, id, row);
    for (const float value : row) {
      const double v = static_cast<double>(value) * std::sqrt(5.0);
      sum += v;
      squares += v * v;
      fourth += v * v * v * v;
    }
    neighbours += static_cast<double>(last) * static_cast<double>(row[0]) * 5;
    last = row[4];
  }
  const double n = kRows * 5;
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(fourth / n, 3, 0.1) << "a normal distribution's fourth moment";
  EXPECT_NEAR(neighbours / kRows, 0, 0.03) << "the end of a row and the start of the next";
  InitializeRow(table, 3, 17, row);
  InitializeRow(table, 3, 17, again);
  EXPECT_EQ(row, again);
}

TEST(InitializeTest, NamedInitializers) {
  const auto row = [](const std::string& initializer) {
    std::vector<float> values(64);
    InitializeRow({"t", 10, 64, false, initializer}, 1, 3, values);
    return values;
  };
  EXPECT_EQ(row("zeros"), std::vector<float>(64, 0));
  EXPECT_EQ(row("ones"), std::vector<float>(64, 1));
  float largest = 0;
  for (const float value : row("uniform:0.25")) {
    largest = std::max(largest, std::fabs(value));
  }
  EXPECT_LE(largest, 0.25f);
  EXPECT_GT(largest, 0.2f);
}

}  // namespace
}  // namespace sluice::models
