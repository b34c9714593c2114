#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/checksum_internal.h"
#include "models/model.h"
#include "models/networks/initialize.h"
#include "tests/models/networks/network_specs.h"
#include "tests/support/allocation_meter.h"

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

// Counts that the bytes cannot hold are refused before memory is allocated for them.
TEST(WeightsTest, CountsAreHeldAgainstTheBytes) {
  const auto sealed = [](uint64_t tensors, uint64_t tables, size_t padding) {
    std::string bytes = "SLWT";
    const uint32_t version = 1;
    bytes.append(reinterpret_cast<const char*>(&version), sizeof(version));
    bytes.append(reinterpret_cast<const char*>(&tensors), sizeof(tensors));
    bytes.append(reinterpret_cast<const char*>(&tables), sizeof(tables));
    bytes.append(padding, '\0');
    const uint64_t checksum = ChecksumOf(bytes);
    bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
    return bytes;
  };
  constexpr size_t kBytes = 1 << 20;
  const std::string tensors = sealed(kBytes, 0, kBytes);
  const std::string tables = sealed(0, kBytes, kBytes);
  const AllocationMeter meter;
  EXPECT_FALSE(LoadWeights(tensors).ok());
  EXPECT_FALSE(LoadWeights(tables).ok());
  EXPECT_LT(meter.Peak(), 4 * kBytes);
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
  const DenseTensor tensor = {
      .name = "deep/0/kernel", .shape = {40, 25}, .initializer = "glorot_uniform"};
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
    RowInitializer(table, 3).Fill(id, row);
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
  RowInitializer(table, 3).Fill(17, row);
  RowInitializer(table, 3).Fill(17, again);
  EXPECT_EQ(row, again);
}

TEST(InitializeTest, ARowsValuesDoNotDependOnItsWidth) {
  std::vector<float> wide(64), narrow(5);
  const Initializer normal("t", 7, "normal", {.stddev = 1});
  normal.Fill(1000, wide);
  normal.Fill(1000, narrow);
  EXPECT_EQ(narrow, std::vector<float>(wide.begin(), wide.begin() + 5));
  normal.Fill(1003, narrow);
  EXPECT_EQ(narrow, std::vector<float>(wide.begin() + 6, wide.begin() + 11));
}

// The distribution of one million values, including its tails.
TEST(InitializeTest, NormalsAreNormal) {
  std::vector<float> values(1'000'000);
  Initializer("t", 11, "normal", {.stddev = 1}).Fill(0, values);
  double sum = 0, squares = 0, cubes = 0, fourth = 0, pairs = 0;
  int beyond_1 = 0, beyond_3 = 0, beyond_4 = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double v = static_cast<double>(values[i]);
    ASSERT_LT(std::fabs(v), 6.8);
    sum += v;
    squares += v * v;
    cubes += v * v * v;
    fourth += v * v * v * v;
    pairs += (i & 1) != 0 ? v * static_cast<double>(values[i - 1]) : 0;
    beyond_1 += std::fabs(v) > 1 ? 1 : 0;
    beyond_3 += std::fabs(v) > 3 ? 1 : 0;
    beyond_4 += std::fabs(v) > 4 ? 1 : 0;
  }
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0, 0.005);
  EXPECT_NEAR(squares / n, 1, 0.007);
  EXPECT_NEAR(cubes / n, 0, 0.02);
  EXPECT_NEAR(fourth / n, 3, 0.05);
  EXPECT_NEAR(2 * pairs / n, 0, 0.007);
  EXPECT_NEAR(beyond_1 / n, 0.317311, 0.0025);
  EXPECT_NEAR(beyond_3 / n, 0.0026998, 0.00026);
  EXPECT_NEAR(beyond_4 / n, 0.0000633, 0.00004);
}

TEST(InitializeTest, UniformsFillTheirRange) {
  std::vector<float> values(1'000'000);
  Initializer("t", 11, "uniform:0.5", {}).Fill(0, values);
  double sum = 0, squares = 0;
  float least = 0, most = 0;
  for (const float value : values) {
    least = std::min(least, value);
    most = std::max(most, value);
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 1e6, 0, 0.0015);
  EXPECT_NEAR(squares / 1e6, 0.25 / 3, 0.0005);
  EXPECT_GE(least, -0.5F);
  EXPECT_LE(most, 0.5F);
  EXPECT_LT(least, -0.49999F);
  EXPECT_GT(most, 0.49999F);
}

TEST(InitializeTest, NamedInitializers) {
  const auto row = [](const std::string& initializer) {
    std::vector<float> values(64);
    RowInitializer({"t", 10, 64, false, initializer}, 1).Fill(3, values);
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
