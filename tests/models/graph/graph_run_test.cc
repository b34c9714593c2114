#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/models/graph/graph_builder.h"

namespace sluice::models::graph {
namespace {

std::vector<int64_t> IntegersOf(GraphBuilder* builder, const std::string& name) {
  // Only numbers leave a graph.
  const std::string numbers = builder->Node("Cast", {name}, {{"to", 1}});
  TestedGraph tested(builder->Output(numbers), ActiveKernels());
  std::vector<int64_t> values;
  for (const float value : tested.Forward()) {
    values.push_back(static_cast<int64_t>(value));
  }
  return values;
}

using List = std::vector<int64_t>;

TEST(LogicTest, BooleansOfNumbersAndIntegers) {
  GraphBuilder b;
  const std::string x = b.Floats({1, 2, std::nanf(""), -1}, {4});
  const std::string y = b.Floats({2}, {});
  EXPECT_EQ(IntegersOf(&b, b.Node("Less", {x, y})), (List{1, 0, 0, 1}));
  EXPECT_EQ(IntegersOf(&b, b.Node("Greater", {y, x})), (List{1, 0, 0, 1}));
  EXPECT_EQ(IntegersOf(&b, b.Node("Equal", {x, y})), (List{0, 1, 0, 0}));
  EXPECT_EQ(IntegersOf(&b, b.Node("IsNaN", {x})), (List{0, 0, 1, 0}));
  const std::string i = b.Integers({0, 1, 2});
  const std::string below = b.Node("Less", {i, b.Integers({1}, {})});
  const std::string even = b.Node("Not", {b.Node("Equal", {i, b.Integers({1}, {})})});
  EXPECT_EQ(IntegersOf(&b, b.Node("And", {below, even})), (List{1, 0, 0}));
  EXPECT_EQ(IntegersOf(&b, b.Node("Or", {below, b.Node("Not", {even})})), (List{1, 1, 0}));
  EXPECT_EQ(IntegersOf(&b, b.Node("Where", {below, i, b.Integers({7, 8, 9})})), (List{0, 8, 9}));
}

TEST(ArithmeticOfIntegersTest, WrapsAndNeverTraps) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  GraphBuilder b;
  const std::string x = b.Integers({7, -7, kLeast, 5});
  const std::string y = b.Integers({2, 2, -1, 0});
  EXPECT_EQ(IntegersOf(&b, b.Node("Div", {x, y})), (List{3, -3, kLeast, 0}));
  EXPECT_EQ(IntegersOf(&b, b.Node("Sub", {b.Integers({kLeast}), b.Integers({0})})), (List{kLeast}));
  EXPECT_EQ(IntegersOf(&b, b.Node("Mul", {b.Integers({-3}), b.Integers({4})})), (List{-12}));
}

TEST(CastTest, WhatNoIntegerHoldsIsTheNearestOne) {
  GraphBuilder b;
  const std::string x = b.Floats({-1.7F, 1e30F, -1e30F, std::nanf("")}, {4});
  const std::string whole = b.Node("Cast", {x}, {{"to", 7}});
  const std::string small = b.Node("Div", {whole, b.Integers({int64_t{1} << 40})});
  EXPECT_EQ(IntegersOf(&b, small), (List{0, (int64_t{1} << 23) - 1, -(int64_t{1} << 23), 0}));
}

TEST(GatherTest, NumbersThatThereAreNotGiveNaN) {
  GraphBuilder b;
  const std::string x = b.Parameter("x", {3, 2});
  TestedGraph tested(b.Output(b.Node("Gather", {x, b.Integers({1, 3, -4})})), ActiveKernels());
  const std::vector<float> y = tested.Forward();
  EXPECT_EQ(y[0], tested.Values(0)[2]);
  EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]) && std::isnan(y[4]));
  tested.Backward();
  EXPECT_EQ(tested.GradientOf(0)[0], 0);
  EXPECT_EQ(tested.GradientOf(0)[2], TestedGraph::WeightOf(0));
}

// [rows, 3] by way of a shape that the graph computes, as PyTorch exports view(x.size(0), -1).
NetworkGraph OfAnyRows() {
  GraphBuilder b;
  const std::string x = b.Numbers("x", 3);
  const std::string rows = b.Node("Gather", {b.Node("Shape", {x}), b.Integers({0}, {})});
  const std::string shape = b.Node(
      "Concat", {b.Node("Unsqueeze", {rows, b.Integers({0})}), b.Integers({-1})}, {{"axis", 0}});
  const std::string w = b.Parameter("w", {3, 4});
  const std::string h = b.Node("Relu", {b.Node("MatMul", {b.Node("Reshape", {x, shape}), w})});
  const std::string mean = b.Node("ReduceMean", {h}, {{"axes", std::vector<int64_t>{1}}});
  return b.Output(b.Node("Softmax", {b.Node("Concat", {h, mean}, {{"axis", 1}})}));
}

TEST(GraphRunTest, RowsDoNotDependOnTheirNeighbours) {
  TestedGraph tested(OfAnyRows(), ActiveKernels(), 5);
  Tensor& x = tested.Input("x");
  const std::vector<float> rows = TestedGraph::Spread(15, 3);
  std::copy(rows.begin(), rows.end(), x.numbers);
  const std::vector<float> all = tested.Forward(false);
  for (size_t r = 0; r < 5; ++r) {
    TestedGraph single(OfAnyRows(), ActiveKernels(), 1);
    std::copy_n(rows.data() + 3 * r, 3, single.Input("x").numbers);
    const std::vector<float> one = single.Forward(false);
    EXPECT_EQ(one, std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(5 * r),
                                      all.begin() + static_cast<std::ptrdiff_t>(5 * r + 5)));
  }
}

TEST(GraphRunTest, TakesBatchesOfOtherSizesAndNone) {
  TestedGraph tested(OfAnyRows(), ActiveKernels(), 2);
  for (const int64_t rows : {4, 0, 1, 7}) {
    ASSERT_TRUE(tested.run().Plan(rows).ok());
    Tensor& x = tested.Input("x");
    std::fill_n(x.numbers, x.count(), 0.5F);
    EXPECT_EQ(tested.Forward().size(), static_cast<size_t>(5 * rows));
    tested.Backward();
    float sum = 0;
    for (const float slope : tested.GradientOf(0)) {
      sum += std::fabs(slope);
    }
    EXPECT_EQ(sum > 0, rows > 0);
  }
}

TEST(GraphRunTest, DropoutIsDecidedBySeedStepAndNode) {
  GraphBuilder b;
  const std::string x = b.Parameter("x", {200});
  const std::string ratio = b.Floats({0.5F}, {});
  const std::string one = b.Node("Dropout", {x, ratio});
  const std::string both = b.Node("Concat", {one, b.Node("Dropout", {x, ratio})}, {{"axis", 0}});
  TestedGraph tested(b.Output(both), ActiveKernels());
  std::fill(tested.Values(0).begin(), tested.Values(0).end(), 1.0F);
  const std::vector<float> first = tested.Forward();
  EXPECT_EQ(tested.Forward(), first);
  EXPECT_NE(std::vector<float>(first.begin(), first.begin() + 200),
            std::vector<float>(first.begin() + 200, first.end()));
  const auto kept = std::count(first.begin(), first.end(), 2.0F);
  EXPECT_GT(kept, 150);
  EXPECT_LT(kept, 250);
  EXPECT_EQ(tested.Forward(false), std::vector<float>(400, 1.0F));
}

TEST(GraphRunTest, BatchNormalizationGivesBackWhatTheBatchHas) {
  GraphBuilder b;
  const std::string y =
      b.Node("BatchNormalization",
             {b.Parameter("x", {4, 1}), b.Parameter("s", {1}), b.Parameter("b", {1}),
              b.Parameter("m", {1}, GraphParameter::STATISTICS),
              b.Parameter("v", {1}, GraphParameter::STATISTICS)},
             {{"epsilon", 0.0}});
  TestedGraph tested(b.Output(y), ActiveKernels());
  tested.Values(0) = {1, 2, 3, 6};
  tested.Values(1) = {2};
  tested.Values(2) = {1};
  tested.Values(3) = {10};
  tested.Values(4) = {4};
  tested.Forward();
  tested.Backward();
  EXPECT_FLOAT_EQ(tested.GradientOf(3)[0], 3);
  EXPECT_FLOAT_EQ(tested.GradientOf(4)[0], 3.5F);
  EXPECT_FLOAT_EQ(tested.Forward(false)[0], 2 * (1 - 10) / 2.0F + 1);
}

// Hidden layers of one unit are rounded as wider ones are: stored models depend on it.
TEST(GraphRunTest, WithoutDotsASingleColumnHasTheBitsOfAWiderProduct) {
  const auto product = [](int64_t columns, int64_t dots) {
    GraphBuilder b;
    const std::string y = b.Node(
        "Gemm", {b.Parameter("x", {3, 37}), b.Parameter("w", {37, columns})}, {{"dots", dots}});
    TestedGraph tested(b.Output(y), ActiveKernels());
    for (size_t i = 0; i < 37; ++i) {
      for (size_t c = 0; c < static_cast<size_t>(columns); ++c) {
        tested.Values(1)[i * static_cast<size_t>(columns) + c] =
            1.0F / (3.0F + static_cast<float>(i));
      }
    }
    return tested.Forward();
  };
  const std::vector<float> wide = product(2, 1);
  const std::vector<float> single = product(1, 0);
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(single[row], wide[2 * row]);
  }
}

TEST(GraphRunTest, WhatNobodyReadsIsNotRun) {
  GraphBuilder b;
  const std::string x = b.Parameter("x", {2});
  b.Node("Add", {x, b.Parameter("y", {3})});  // could not be
  TestedGraph tested(b.Output(b.Node("Relu", {x})), ActiveKernels());
  ASSERT_TRUE(tested.ok());
  EXPECT_EQ(tested.run().Find("y"), nullptr);
}

}  // namespace
}  // namespace sluice::models::graph
