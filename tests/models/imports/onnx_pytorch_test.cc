#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/imports/bind_features_internal.h"
#include "models/imports/onnx_reader_internal.h"
#include "tests/models/imports/recorded_network.h"

// Files that PyTorch wrote, with what it computed of them: see
// tests/models/graph/pytorch/record.py.
namespace sluice::models {
namespace {

class OnnxPytorchTest : public ::testing::TestWithParam<std::string> {};

TEST_P(OnnxPytorchTest, TheFileHasValuesOutputsAndGradientsOfPyTorch) {
  auto expected = ReadNumbers("graph/pytorch/" + GetParam() + ".numbers");
  Result<ImportedNetwork> read = ReadOnnx(ReadWhole("graph/pytorch/" + GetParam() + ".onnx"), {});
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  std::vector<std::string> unread;
  const Status bound = BindToFeatures(DenseAndIds(), &*read, &unread);
  ASSERT_TRUE(bound.ok()) << bound.ToString();

  graph::TestedGraph tested(read->graph, ActiveKernels(), kRecordedRows);
  ASSERT_TRUE(tested.ok());
  size_t learnt = 0;
  for (size_t p = 0; p < tested.parameters(); ++p) {
    const std::vector<float>& values = read->values.at(tested.Name(p));
    EXPECT_LT(Error(values.data(), expected[tested.Name(p)]), 1e-6) << tested.Name(p);
    tested.Values(p) = values;
  }
  SetInputs(expected, &tested);
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
