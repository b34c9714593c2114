#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/models/graph/graph_builder.h"

// What PyTorch computed of models that people write: see pytorch/record.py.
namespace sluice::models::graph {
namespace {

const std::string kFolder = std::string(SLUICE_SOURCE_DIR) + "/tests/models/graph/pytorch/";

std::map<std::string, std::vector<double>> ReadNumbers(const std::string& file) {
  std::map<std::string, std::vector<double>> numbers;
  std::ifstream in(file);
  EXPECT_TRUE(in.good()) << file;
  std::string line;
  while (std::getline(in, line)) {
    const size_t colon = line.rfind(": ");
    std::istringstream values(line.substr(colon + 2));
    std::vector<double>& own = numbers[line.substr(0, colon)];
    for (double value = 0; values >> value;) {
      own.push_back(value);
    }
  }
  return numbers;
}

// The length of the difference, in units of the expected one's.
double Error(const float* found, const std::vector<double>& expected) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double distance = static_cast<double>(found[i]) - expected[i];
    error += distance * distance;
    norm += expected[i] * expected[i];
  }
  // What is 0 but for rounding has no direction.
  return std::sqrt(error) / std::max(std::sqrt(norm), 1e-2);
}

class PytorchTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PytorchTest, OutputsAndGradientsAreTheSame) {
  NetworkGraph graph;
  std::ifstream in(kFolder + GetParam() + ".graph", std::ios::binary);
  ASSERT_TRUE(graph.ParseFromIstream(&in));
  auto expected = ReadNumbers(kFolder + GetParam() + ".numbers");
  constexpr int64_t kRows = 5;
  TestedGraph tested(graph, ActiveKernels(), kRows);
  ASSERT_TRUE(tested.ok());
  for (size_t p = 0; p < tested.parameters(); ++p) {
    const std::vector<double>& values = expected[tested.Name(p)];
    ASSERT_EQ(values.size(), tested.Values(p).size()) << tested.Name(p);
    for (size_t i = 0; i < values.size(); ++i) {
      tested.Values(p)[i] = static_cast<float>(values[i]);
    }
  }
  for (const std::string name : {"dense", "ids"}) {
    if (tested.run().Find(name) == nullptr) {
      continue;
    }
    Tensor& input = tested.Input(name);
    ASSERT_EQ(input.count(), expected[name].size());
    for (size_t i = 0; i < input.count(); ++i) {
      if (input.type == ElementType::kFloat) {
        input.numbers[i] = static_cast<float>(expected[name][i]);
      } else {
        input.integers[i] = static_cast<int64_t>(expected[name][i]);
      }
    }
  }
  const std::vector<float> output = tested.Forward();
  ASSERT_EQ(output.size(), expected["output"].size());
  EXPECT_LT(Error(output.data(), expected["output"]), 1e-5);
  tested.Backward();
  size_t compared = 0;
  for (size_t p = 0; p < tested.parameters(); ++p) {
    const auto gradient = expected.find("d " + tested.Name(p));
    if (gradient != expected.end()) {
      EXPECT_LT(Error(tested.GradientOf(p).data(), gradient->second), 1e-5) << tested.Name(p);
      ++compared;
    }
  }
  EXPECT_GT(compared, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, PytorchTest,
                         ::testing::Values("cross", "factors", "attention", "text", "gru", "lstm",
                                           "rnn", "normed", "functions"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sluice::models::graph
