#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/imports/own_loss_internal.h"
#include "tests/models/graph/graph_builder.h"
#include "tests/models/networks/network_specs.h"

namespace sluice::models {
namespace {

// One weight times one number, and a loss of the difference from the label.
ModelSpec LineWithLoss(const graph::GraphBuilder& loss, const std::string& losses, double mean,
                       double scale) {
  ModelSpec spec = Spec("my.Line");
  AddNumber(&spec, "x");
  SetNumberLabel(&spec, mean, scale);
  graph::GraphBuilder line;
  const std::string output =
      line.Node("MatMul", {line.Numbers("x", 1), line.Parameter("w", {1, 1})});
  ImportedNetwork network;
  network.graph = line.Output(output);
  OwnLoss own;
  own.network.graph = loss.graph;
  own.network.graph.add_outputs(losses);
  EXPECT_TRUE(AttachLoss(own, output, "", spec.features().label(), &network).ok());
  *spec.mutable_graph() = network.graph;
  return spec;
}

// The loss of one row where the weight is 0, so that the output is the label's mean, and the
// label is one deviation above it; and the gradient by the weight.
struct LossAndSlope {
  double loss = 0;
  float slope = 0;
};
LossAndSlope OneAboveTheMean(const ModelSpec& spec) {
  const auto network = MakeNetwork(spec);
  FeatureBatch batch;
  batch.rows = 1;
  batch.dense_width = 1;
  batch.dense = {1};
  batch.labels = {1};
  const std::vector<float> weight = {0};
  ParameterView view;
  network->CollectIds(batch, &view);
  view.dense = {weight.data()};
  Gradient gradient;
  const LossSum sum = network->Step(batch, view, 1, &gradient);
  return {sum.loss, gradient.dense[0][0]};
}

// 32 bits would round output and label to 1e9.
TEST(OwnLossTest, DifferencesFromALabelFarFromZeroAreExact) {
  for (const double mean : {0.0, 1e9}) {
    graph::GraphBuilder squared;
    const std::string off = squared.Node("Sub", {"output", "label"});
    const LossAndSlope found =
        OneAboveTheMean(LineWithLoss(squared, squared.Node("Mul", {off, off}), mean, 0.25));
    EXPECT_NEAR(found.loss, 0.0625, 1e-6) << mean;
    EXPECT_NEAR(found.slope, 2 * -0.25 * 0.25, 1e-6) << mean;
  }
}

TEST(OwnLossTest, ComparisonsWithALabelFarFromZeroAreExact) {
  for (const double mean : {0.0, 1e9}) {
    graph::GraphBuilder careful;
    const std::string below = careful.Node("Greater", {"label", "output"});
    const std::string weight =
        careful.Node("Where", {below, careful.Floats({3}, {}), careful.Floats({1}, {})});
    const std::string off = careful.Node("Abs", {careful.Node("Sub", {"label", "output"})});
    const LossAndSlope found =
        OneAboveTheMean(LineWithLoss(careful, careful.Node("Mul", {weight, off}), mean, 0.25));
    EXPECT_NEAR(found.loss, 3 * 0.25, 1e-6) << mean;
    EXPECT_NEAR(found.slope, -3 * 0.25, 1e-6) << mean;
  }
}

// What is more than a difference is in the label's own unit.
TEST(OwnLossTest, OtherUsesReadTheLabelItself) {
  graph::GraphBuilder relative;
  const std::string off = relative.Node("Abs", {relative.Node("Sub", {"output", "label"})});
  const LossAndSlope found =
      OneAboveTheMean(LineWithLoss(relative, relative.Node("Div", {off, "label"}), 100, 25));
  EXPECT_NEAR(found.loss, 25.0 / 125, 1e-6);
}

}  // namespace
}  // namespace sluice::models
