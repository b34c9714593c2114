#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/models/graph/graph_builder.h"

namespace sluice::models::graph {
namespace {

using List = std::vector<int64_t>;

TEST(EmbeddingBagTest, SumsMeansAndRootsOfWeightedIds) {
  const std::vector<uint32_t> ids = {2, 0, 2, 1};
  const std::vector<uint32_t> ends = {2, 2, 4};
  const std::vector<float> weights = {2, 1, 0.5F, 1};
  const auto row_of = [&](const std::string& combiner, size_t row) {
    GraphBuilder b;
    const std::string x = b.Parameter("x", {3, 2});
    const std::string bag = b.Ids("bag", 0, GraphInput::BAG);
    const std::string y = b.Node("EmbeddingBag", {x, bag}, {{"combiner", combiner.c_str()}});
    TestedGraph tested(b.Output(y), ActiveKernels());
    const RowUse use = {ids, ends, weights};
    tested.Input("bag").use = &use;
    tested.Values(0) = {1, 2, 3, 4, 5, 6};
    const std::vector<float> all = tested.Forward();
    tested.Backward();
    EXPECT_EQ(tested.GradientOf(0).size(), 6u);
    if (combiner == "sum") {
      EXPECT_FLOAT_EQ(tested.GradientOf(0)[4],
                      2 * TestedGraph::WeightOf(0) + 0.5F * TestedGraph::WeightOf(4));
    }
    return std::vector<float>{all[2 * row], all[2 * row + 1]};
  };
  EXPECT_EQ(row_of("sum", 0), (std::vector<float>{11, 14}));
  EXPECT_EQ(row_of("sum", 1), (std::vector<float>{0, 0}));
  EXPECT_FLOAT_EQ(row_of("mean", 0)[0], 11.0F / 3);
  EXPECT_FLOAT_EQ(row_of("sqrtn", 2)[1], 7 / std::sqrt(1.25F));
}

TEST(EmbeddingBagTest, ReadsSomeColumns) {
  const std::vector<uint32_t> ids = {2, 0, 2};
  const RowUse use = {ids, {}, {}};
  GraphBuilder b;
  const std::string bag = b.Ids("ids", 0, GraphInput::BAG);
  const std::string x = b.Parameter("x", {3, 4});
  const std::string left = b.Node("EmbeddingBag", {x, bag}, {{"columns", List{0, 1}}});
  const std::string right = b.Node("EmbeddingBag", {x, bag}, {{"columns", List{1, 4}}});
  TestedGraph tested(b.Output(b.Node("Concat", {right, left}, {{"axis", 1}})), ActiveKernels());
  tested.Input("ids").use = &use;
  const TableReads reads = {{&tested.Input("ids")}, {use}};
  for (const bool as_table : {false, true}) {
    tested.run().Find("x")->reads = as_table ? &reads : nullptr;
    const std::vector<float>& rows = tested.Values(0);
    EXPECT_EQ(tested.Forward(),
              (std::vector<float>{rows[9], rows[10], rows[11], rows[8], rows[1], rows[2], rows[3],
                                  rows[0], rows[9], rows[10], rows[11], rows[8]}));
    tested.Backward();
    const auto weight = [](size_t i) { return TestedGraph::WeightOf(i); };
    EXPECT_EQ(tested.GradientOf(0),
              (std::vector<float>{weight(7), weight(4), weight(5), weight(6), 0, 0, 0, 0,
                                  weight(3) + weight(11), weight(0) + weight(8),
                                  weight(1) + weight(9), weight(2) + weight(10)}));
  }
}

// Feature i has rows 0 to 2 of the table, one of them per row; feature j rows 3 and 4, any number
// of them.
TEST(EmbeddingBagTest, AddsUpTheRowsOfSeveralFeaturesToAStart) {
  const std::vector<uint32_t> i_rows = {2, 0, 2};
  const std::vector<uint32_t> j_rows = {3, 4, 3};
  const std::vector<uint32_t> ends = {2, 2, 3};
  const RowUse i_use = {i_rows, {}, {}};
  const RowUse j_use = {j_rows, ends, {}};
  for (const Shape& start : {Shape{}, Shape{2}, Shape{3, 2}}) {
    SCOPED_TRACE(ShapeText(start));
    GraphBuilder b;
    std::vector<std::string> inputs = {b.Parameter("table", {5, 2}), b.Ids("i", 0, GraphInput::BAG),
                                       b.Ids("j", 0, GraphInput::BAG)};
    if (!start.empty()) {
      inputs.push_back(b.Parameter("start", start));
    }
    TestedGraph tested(b.Output(b.Node("EmbeddingBag", inputs)), ActiveKernels());
    tested.Input("i").use = &i_use;
    tested.Input("j").use = &j_use;
    const TableReads reads = {{&tested.Input("i"), &tested.Input("j")}, {i_use, j_use}};
    tested.run().Find("table")->reads = &reads;
    const std::vector<float> y = tested.Forward();
    tested.Backward();
    const auto of_start = [&](size_t row, size_t k) {
      return start.empty() ? 0 : tested.Values(1)[(start.size() == 1 ? 0 : row * 2) + k];
    };
    const std::vector<std::vector<size_t>> rows = {{2, 3, 4}, {0}, {2, 3}};
    std::vector<float> gradient(10, 0);
    for (size_t row = 0; row < 3; ++row) {
      for (size_t k = 0; k < 2; ++k) {
        float expected = of_start(row, k);
        for (const size_t own : rows[row]) {
          expected += tested.Values(0)[own * 2 + k];
          gradient[own * 2 + k] += TestedGraph::WeightOf(row * 2 + k);
        }
        EXPECT_FLOAT_EQ(y[row * 2 + k], expected);
      }
    }
    for (size_t at = 0; at < gradient.size(); ++at) {
      EXPECT_FLOAT_EQ(tested.GradientOf(0)[at], gradient[at]) << at;
    }
    for (size_t at = 0; !start.empty() && at < tested.GradientOf(1).size(); ++at) {
      const auto weight = [](size_t of) { return TestedGraph::WeightOf(of); };
      EXPECT_FLOAT_EQ(tested.GradientOf(1)[at], start.size() == 2
                                                    ? weight(at)
                                                    : weight(at) + weight(at + 2) + weight(at + 4));
    }
  }
}

}  // namespace
}  // namespace sluice::models::graph
