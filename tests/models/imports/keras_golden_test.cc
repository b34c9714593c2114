#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/imports/bind_features_internal.h"
#include "models/imports/keras_reader_internal.h"
#include "tests/models/imports/recorded_network.h"

// Models that TensorFlow.js wrote, with what it computed of them: see keras/record.js.
namespace sluice::models {
namespace {

class KerasGoldenTest : public ::testing::TestWithParam<std::string> {};

TEST_P(KerasGoldenTest, OutputsAndGradientsAreTheSame) {
  auto expected = ReadNumbers("imports/keras/" + GetParam() + ".numbers");
  Result<ImportedNetwork> read = ReadKeras(ReadWhole("imports/keras/" + GetParam() + ".json"));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  std::vector<std::string> unread;
  const Status bound = BindToFeatures(DenseAndIds(), &*read, &unread);
  ASSERT_TRUE(bound.ok()) << bound.ToString();

  graph::TestedGraph tested(read->graph, ActiveKernels(), kRecordedRows);
  ASSERT_TRUE(tested.ok());
  size_t learnt = 0;
  for (size_t p = 0; p < tested.parameters(); ++p) {
    const std::vector<double>& values = expected[tested.Name(p)];
    ASSERT_EQ(values.size(), tested.Values(p).size()) << tested.Name(p);
    tested.Values(p).assign(values.begin(), values.end());
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

INSTANTIATE_TEST_SUITE_P(All, KerasGoldenTest,
                         ::testing::Values("rows", "windows", "states", "both_ways"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sluice::models
