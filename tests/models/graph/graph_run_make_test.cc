#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/models/graph/graph_builder.h"

// What graphs are refused, and with which message.
namespace sluice::models::graph {
namespace {

struct BadGraph {
  std::string name;
  std::function<void(GraphBuilder&)> build;
  std::string message;
};

void PrintTo(const BadGraph& bad, std::ostream* out) {
  *out << bad.name;
}

// A table that a graph reads by the ids of "i".
GraphTable* Table(GraphBuilder& b) {
  b.Ids("i", 0, GraphInput::BAG);
  GraphTable* table = b.graph.add_tables();
  table->set_name("t");
  table->add_inputs("i");
  table->set_rows(10);
  table->set_dimension(2);
  b.Output(b.Node("EmbeddingBag", {"t", "i"}));
  return table;
}

std::vector<BadGraph> BadGraphs() {
  using Builder = GraphBuilder;
  const auto node = [](const std::string& op, const Shape& shape,
                       const std::vector<NamedAttribute>& attributes = {}) {
    return [=](Builder& b) { b.Output(b.Node(op, {b.Parameter("x", shape)}, attributes)); };
  };
  return {
      {"UnknownOperator", node("Relus", {2}), "operator 'Relus' is not supported"},
      {"UnknownAttribute", node("Relu", {2}, {{"leak", 1}}), "attribute 'leak' is not supported"},
      {"NoOutput", [](Builder& b) { b.Parameter("x", {2}); }, "a network has one output, not 0"},
      {"OutputOfNobody", [](Builder& b) { b.Output(b.Parameter("x", {2})); },
       "no node makes the output 'x'"},
      {"Cycle",
       [](Builder& b) {
         b.Output(b.Node("Add", {"Relu2/0", b.Parameter("x", {2})}));
         b.Node("Relu", {"Add1/0"});
       },
       "no value 'Relu2/0' has been made before it"},
      {"MadeTwice",
       [](Builder& b) {
         b.Output(b.Node("Relu", {b.Parameter("x", {2})}));
         *b.graph.add_nodes() = b.graph.nodes(0);
       },
       "two values are called 'Relu1/0'"},
      {"TooFewInputs", node("Add", {2}), "1 inputs: it has 2 to 2"},
      {"LeftOutInput",
       [](Builder& b) {
         b.Output(b.Node("Add", {"", b.Parameter("x", {2})}));
       },
       "input 1 is left out"},
      {"SecondOutput",
       [](Builder& b) {
         b.Node("Dropout", {b.Parameter("x", {2})}, {}, 2);
         b.Output("Dropout1/1");
       },
       "output 2 is not supported"},
      {"TooManyParameters",
       [](Builder& b) {
         b.Output(b.Node("Relu", {b.Parameter("x", {8192, 8192})}));
         b.Parameter("y", {1});
       },
       "more than 256 MiB, with 'y'"},
      {"NegativeExtent", node("Relu", {-1}), "too large"},
      {"HugeExtents", node("Relu", {int64_t{1} << 62, 4}), "too large"},
      {"TooManyAxes", node("Relu", {1, 1, 1, 1, 1, 1, 1, 1, 1}),
       "9 axes: at most 8 [rows, steps, channels"},
      {"TableForAll",
       [](Builder& b) {
         b.Ids("i");
         GraphTable* table = b.graph.add_tables();
         table->set_name("t");
         table->add_inputs("i");
         table->set_rows(10);
         table->set_dimension(2);
         b.Output(b.Node("Relu", {"t"}));
       },
       "table 't' can only be read by Gather"},
      {"TableByIdsOfOthers",
       [](Builder& b) {
         b.Ids("j", 0, GraphInput::BAG);
         Table(b);
         b.Output(b.Node("EmbeddingBag", {"t", "i", "j"}));
       },
       "with the ids of 'i'"},
      {"TableOfNobody", [](Builder& b) { Table(b)->clear_inputs(); }, "no place for the ids"},
      {"TableNamesAnInputTwice", [](Builder& b) { Table(b)->add_inputs("i"); }, "names 'i' twice"},
      {"FirstRowOutside", [](Builder& b) { Table(b)->add_first_rows(11); }, "no place for the ids"},
      {"NegativeFirstRow", [](Builder& b) { Table(b)->add_first_rows(-1); },
       "no place for the ids"},
      {"FirstRowsOfMoreInputs",
       [](Builder& b) {
         Table(b)->add_first_rows(1);
         b.graph.mutable_tables(0)->add_first_rows(2);
       },
       "no place for the ids"},
  };
}

class BadGraphTest : public ::testing::TestWithParam<BadGraph> {};

TEST_P(BadGraphTest, IsRefusedByName) {
  GraphBuilder builder;
  GetParam().build(builder);
  const auto run = GraphRun::Make(builder.graph, ActiveKernels());
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().ToString().find(GetParam().message), std::string::npos)
      << run.status().ToString();
}
INSTANTIATE_TEST_SUITE_P(All, BadGraphTest, ::testing::ValuesIn(BadGraphs()),
                         [](const auto& test) { return test.param.name; });

// What only a batch's size decides is refused by Plan.
std::vector<BadGraph> BadShapes() {
  using Builder = GraphBuilder;
  const auto of = [](const std::string& op, const std::vector<Shape>& shapes,
                     const std::vector<NamedAttribute>& attributes = {}) {
    return [=](Builder& b) {
      std::vector<std::string> inputs;
      for (const Shape& shape : shapes) {
        inputs.push_back(b.Parameter("p" + std::to_string(inputs.size()), shape));
      }
      b.Output(b.Node(op, inputs, attributes));
    };
  };
  const auto shaped = [](const std::string& op, const Shape& x,
                         const std::vector<int64_t>& integers) {
    return [=](Builder& b) { b.Output(b.Node(op, {b.Parameter("x", x), b.Integers(integers)})); };
  };
  const auto columns = [](const std::vector<int64_t>& some) {
    return [=](Builder& b) {
      b.Output(b.Node("EmbeddingBag", {b.Parameter("x", {2, 3}), b.Ids("i", 0, GraphInput::BAG)},
                      {{"columns", some}}));
    };
  };
  return {
      {"ColumnsBeyond", columns({1, 4}), "columns [1, 4] are not the begin and the end"},
      {"NoColumn", columns({2, 2}), "columns [2, 2] are not the begin and the end"},
      {"OneColumn", columns({1}), "columns [1] are not the begin and the end"},
      {"Add", of("Add", {{2}, {3}}), "the shapes [2] and [3] do not fit together"},
      {"MatMul", of("MatMul", {{2, 3}, {2, 3}}), "have no product"},
      {"MatMulOfNumbers", of("MatMul", {{}, {}}), "a single number is no matrix"},
      {"Gemm", of("Gemm", {{2, 3, 4}, {4, 2}}), "matrices have two axes"},
      {"Softmax", of("Softmax", {{2}}, {{"axis", 3}}), "axis 3 of a value with 1"},
      {"SoftmaxOfANumber", of("Softmax", {{}}), "axis -1 of a value with 0"},
      {"Concat", of("Concat", {{2, 3}, {3, 3}}, {{"axis", 1}}), "cannot stand side by side"},
      {"Reshape", shaped("Reshape", {2, 3}, {4}), "cannot become [4]"},
      {"ReshapeTwice", shaped("Reshape", {2, 3}, {-1, -1}), "too large"},
      {"ReshapeHuge", shaped("Reshape", {2}, {int64_t{1} << 40, -1}), "too large"},
      {"Expand", shaped("Expand", {2}, {1 << 20, 1 << 20}), "too large"},
      {"ReduceMaxOfNothing", of("ReduceMax", {{0, 2}}, {{"axes", std::vector<int64_t>{0}}}),
       "nothing is the greatest"},
      {"Conv", of("Conv", {{1, 2, 3}, {1, 2, 4}}), "does not fit into 3 places"},
      {"ConvOfPictures", of("Conv", {{1, 1, 3, 3}, {1, 1, 2, 2}}), "outputs x channels x window"},
      {"ConvGroups", of("Conv", {{1, 2, 3}, {3, 1, 1}}, {{"group", 2}}), "do not fit"},
      {"Pool", of("MaxPool", {{1, 1, 3}}), "kernel_shape is missing"},
      {"Lstm", of("LSTM", {{2, 1, 3}, {1, 4, 3}, {1, 8, 1}}), "do not fit"},
      {"LongSequence", of("RNN", {{5000, 1, 1}, {1, 1, 1}, {1, 1, 1}}), "at most 4096"},
      {"Direction", of("GRU", {{2, 1, 1}, {1, 3, 1}, {1, 3, 1}}, {{"direction", "up"}}),
       "no direction 'up'"},
      {"Split", [](Builder& b) { b.Output(b.Node("Split", {b.Parameter("x", {5})}, {}, 2)); },
       "has no 2 equal parts"},
      {"Types",
       [](Builder& b) {
         b.Output(b.Node("Add", {b.Parameter("x", {1}), b.Integers({1})}));
       },
       "numbers and integers cannot be combined"},
      {"UnknownShape",
       [](Builder& b) {
         const std::string x = b.Parameter("x", {2});
         b.Output(b.Node("Reshape", {x, b.Node("Cast", {x}, {{"to", 7}})}));
       },
       "must not depend on the rows of a batch"},
      {"Constant",
       [](Builder& b) {
         b.Output(b.Node("Relu", {b.Floats({1, 2}, {3})}));
       },
       "a constant of shape [3] has 2 elements"},
      {"Batches",
       [](Builder& b) {
         std::string x = b.Numbers("x", 1 << 10);
         for (int i = 0; i < 30; ++i) {
           x = b.Node("Concat", {x, x}, {{"axis", 1}});
         }
         b.Output(x);
       },
       "elements"},
      {"StartOfAnotherWidth",
       [](Builder& b) {
         b.Output(b.Node("EmbeddingBag", {b.Parameter("x", {3, 2}), b.Ids("i", 0, GraphInput::BAG),
                                          b.Parameter("start", {4})}));
       },
       "cannot be added to a value of shape [4]"},
      {"LeftOutIds",
       [](Builder& b) {
         Table(b);
         b.Output(b.Node("EmbeddingBag", {"t", "i", "", b.Parameter("start", {2})}));
       },
       "the ids must be a feature's"},
      {"StartBeforeTheIds",
       [](Builder& b) {
         b.Output(b.Node("EmbeddingBag", {b.Parameter("x", {3, 2}), b.Parameter("start", {2}),
                                          b.Ids("i", 0, GraphInput::BAG)}));
       },
       "the ids must be a feature's"},
  };
}

class BadShapeTest : public ::testing::TestWithParam<BadGraph> {};

TEST_P(BadShapeTest, IsRefusedWithItsNode) {
  GraphBuilder builder;
  GetParam().build(builder);
  const auto run = GraphRun::Make(builder.graph, ActiveKernels());
  ASSERT_TRUE(run.ok()) << run.status().ToString();
  const Status status = run.value()->Plan(2);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.ToString().find(GetParam().message), std::string::npos) << status.ToString();
  EXPECT_NE(status.ToString().find("node '"), std::string::npos) << status.ToString();
}
INSTANTIATE_TEST_SUITE_P(All, BadShapeTest, ::testing::ValuesIn(BadShapes()),
                         [](const auto& test) { return test.param.name; });

TEST(GraphRunTest, ManyNodesAreTooMany) {
  GraphBuilder b;
  std::string x = b.Parameter("x", {1});
  for (int i = 0; i <= kMaxNodes; ++i) {
    x = b.Node("Relu", {x});
  }
  const auto run = GraphRun::Make(b.Output(x), ActiveKernels());
  ASSERT_FALSE(run.ok());
  EXPECT_NE(run.status().ToString().find("a graph of 20001 nodes: at most 20000"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::models::graph
