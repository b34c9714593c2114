#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/models/graph/graph_builder.h"

// Values that lie in the memory of others.
namespace sluice::models::graph {
namespace {

// Rows of two parameters by the ids 2, 0, 2, beside a number. `apart`: computed where they are read
// twice, which keeps them out of the joined value.
struct Joined {
  std::vector<float> output, gradient_x, gradient_y, gradient_kernel;
  size_t line;
};
Joined JoinRows(const std::string& op, bool apart) {
  const std::vector<uint32_t> ids = {2, 0, 2};
  const RowUse use = {ids, {}, {}};
  GraphBuilder b;
  const std::string n = b.Numbers("n", 1);
  const std::string given = b.Ids("ids", 0, op == "Gather" ? GraphInput::IDS : GraphInput::BAG);
  const std::string x = b.Node(op, {b.Parameter("x", {3, 2}), given});
  const std::string y = b.Node(op, {b.Parameter("y", {3, 3}), given});
  const std::string joined = b.Node("Concat", {x, n, y}, {{"axis", 1}});
  std::string product = b.Node("MatMul", {joined, b.Parameter("kernel", {6, 2})});
  if (apart) {
    const std::string nothing = b.Node("Mul", {b.Node("ReduceSum", {b.Node("Mul", {x, x})}),
                                               b.Node("ReduceSum", {b.Node("Mul", {y, y})})});
    product = b.Node("Add", {product, b.Node("Mul", {nothing, b.Floats({0}, {})})});
  }
  TestedGraph tested(b.Output(product), ActiveKernels());
  Tensor& numbers = tested.Input("n");
  std::iota(numbers.numbers, numbers.numbers + 3, 1.0F);
  if (op == "Gather") {
    std::copy(ids.begin(), ids.end(), tested.Input("ids").integers);
  } else {
    tested.Input("ids").use = &use;
  }
  const TableReads reads = {{&tested.Input("ids")}, {use}};
  tested.run().Find("x")->reads = tested.run().Find("y")->reads = &reads;
  for (size_t p : {size_t{0}, size_t{1}}) {
    tested.run().Find(tested.Name(p))->gradient_count = tested.Values(p).size();
  }
  Joined all;
  all.output = tested.Forward();
  tested.Backward();
  all.gradient_x = tested.GradientOf(0);
  all.gradient_y = tested.GradientOf(1);
  all.gradient_kernel = tested.GradientOf(2);
  all.line = tested.run().Find(x)->line;
  return all;
}

TEST(JoinedRowsTest, AreTheSameWhereTheyAreComputedInPlace) {
  for (const std::string op : {"EmbeddingBag", "Gather"}) {
    const Joined in_place = JoinRows(op, false);
    const Joined copied = JoinRows(op, true);
    EXPECT_EQ(in_place.line, 6u) << op;
    EXPECT_EQ(copied.line, 0u) << op;
    EXPECT_EQ(in_place.output, copied.output) << op;
    EXPECT_EQ(in_place.gradient_x, copied.gradient_x) << op;
    EXPECT_EQ(in_place.gradient_y, copied.gradient_y) << op;
    EXPECT_EQ(in_place.gradient_kernel, copied.gradient_kernel) << op;
  }
}

TEST(ViewTest, SeveralShareOneGradient) {
  GraphBuilder b;
  const std::string x = b.Node("Neg", {b.Parameter("x", {2, 3})});
  const std::string row = b.Node("Reshape", {x, b.Integers({6})});
  const std::string column = b.Node("Reshape", {row, b.Integers({3, 2})});
  const std::string sum = b.Node("Add", {row, b.Node("Reshape", {column, b.Integers({-1})})});
  TestedGraph tested(b.Output(b.Node("Add", {sum, b.Node("Flatten", {x}, {{"axis", 0}})})),
                     ActiveKernels());
  tested.Forward();
  tested.Backward();
  for (const std::string& view : {row, column}) {
    EXPECT_EQ(tested.run().Find(view)->gradient, tested.run().Find(x)->gradient);
  }
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_FLOAT_EQ(tested.GradientOf(0)[i], -3 * TestedGraph::WeightOf(i));
  }
}

}  // namespace
}  // namespace sluice::models::graph
