#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "models/imports/bind_features_internal.h"
#include "models/imports/onnx_reader_internal.h"
#include "tests/models/graph/graph_builder.h"

// Files that PyTorch wrote, with what it computed of them: see
// tests/models/graph/pytorch/record.py.
namespace sluice::models {
namespace {

constexpr int64_t kRows = 5;

std::string ReadWhole(const std::string& name) {
  std::ifstream in(std::string(SLUICE_SOURCE_DIR) + "/tests/models/graph/pytorch/" + name,
                   std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

std::map<std::string, std::vector<double>> ReadNumbers(const std::string& name) {
  std::map<std::string, std::vector<double>> numbers;
  std::istringstream in(ReadWhole(name));
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.rfind(": ");
    std::istringstream values(line.substr(colon + 2));
    for (double value = 0; values >> value;) {
      numbers[line.substr(0, colon)].push_back(value);
    }
  }
  return numbers;
}

double Error(const float* found, const std::vector<double>& expected) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double distance = static_cast<double>(found[i]) - expected[i];
    error += distance * distance;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error) / std::max(std::sqrt(norm), 1e-2);
}

FeaturePlan DenseAndIds() {
  FeaturePlan plan;
  Feature* dense = plan.add_features();
  dense->set_name("dense");
  dense->set_kind(Feature::TENSOR);
  dense->set_width(4);
  Feature* ids = plan.add_features();
  ids->set_name("ids");
  ids->set_kind(Feature::CATEGORY);
  ids->mutable_categorizer()->set_buckets(9);
  return plan;
}

class OnnxPytorchTest : public ::testing::TestWithParam<std::string> {};

TEST_P(OnnxPytorchTest, TheFileHasValuesOutputsAndGradientsOfPyTorch) {
  auto expected = ReadNumbers(GetParam() + ".numbers");
  Result<ImportedNetwork> read = ReadOnnx(ReadWhole(GetParam() + ".onnx"), {});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  std::vector<std::string> unread;
  const Status bound = BindToFeatures(DenseAndIds(), &*read, &unread);
  ASSERT_TRUE(bound.ok()) << bound.ToString();

  graph::TestedGraph tested(read->graph, ActiveKernels(), kRows);
  ASSERT_TRUE(tested.ok());
  size_t learnt = 0;
  for (size_t p = 0; p < tested.parameters(); ++p) {
    const std::vector<float>& values = read->values.at(tested.Name(p));
    EXPECT_LT(Error(values.data(), expected[tested.Name(p)]), 1e-6) << tested.Name(p);
    tested.Values(p) = values;
  }
  for (const std::string name : {"dense", "ids"}) {
    graph::Tensor* input = tested.run().Find(name);
    if (input == nullptr) {
      continue;
    }
    tested.run().Allocate(input);
    for (size_t i = 0; i < input->count(); ++i) {
      if (input->type == graph::ElementType::kFloat) {
        input->numbers[i] = static_cast<float>(expected[name][i]);
      } else {
        input->integers[i] = static_cast<int64_t>(expected[name][i]);
      }
    }
  }
  EXPECT_LT(Error(tested.Forward().data(), expected["output"]), 1e-5);
  tested.Backward();
  for (size_t p = 0; p < tested.parameters(); ++p) {
    const auto gradient = expected.find("d " + tested.Name(p));
    if (gradient != expected.end()) {
      EXPECT_LT(Error(tested.GradientOf(p).data(), gradient->second), 1e-5) << tested.Name(p);
      ++learnt;
    }
  }
  EXPECT_GT(learnt, 1u);
}

INSTANTIATE_TEST_SUITE_P(All, OnnxPytorchTest,
                         ::testing::Values("cross", "factors", "attention", "text", "gru", "lstm",
                                           "rnn", "normed", "functions"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sluice::models
