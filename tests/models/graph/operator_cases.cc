#include "tests/models/graph/operator_cases.h"

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::models::graph {
namespace {

using B = GraphBuilder;

// A function of one number each.
OperatorCase Unary(const std::string& op, const std::vector<NamedAttribute>& attributes = {},
                   const std::string& what = "") {
  return {op + what, op,
          [op, attributes](B& b) {
            return b.Node(op, {b.Parameter("x", {3, 7})}, attributes);
          },
          op == "Log" || op == "Sqrt"};
}
// A function of two, of these shapes.
OperatorCase Binary(const std::string& op, const Shape& x, const Shape& y,
                    const std::string& what = "") {
  return {op + what, op,
          [=](B& b) {
            return b.Node(op, {b.Parameter("x", x), b.Parameter("y", y)});
          },
          op == "Pow" || op == "Div"};
}
OperatorCase Reduced(const std::string& op, const std::vector<NamedAttribute>& attributes,
                     const std::string& what) {
  return {op + what, op, [op, attributes](B& b) {
            return b.Node(op, {b.Parameter("x", {3, 4, 2})}, attributes);
          }};
}
OperatorCase OfShape(const std::string& what, const std::string& op, const Shape& x,
                     const std::vector<std::vector<int64_t>>& integers,
                     const std::vector<NamedAttribute>& attributes = {}) {
  return {op + what, op, [=](B& b) {
            std::vector<std::string> inputs = {b.Parameter("x", x)};
            for (const std::vector<int64_t>& values : integers) {
              inputs.push_back(b.Integers(values));
            }
            // Something behind a view, so that not all gradients share their memory.
            return b.Node("Tanh", {b.Node(op, inputs, attributes)});
          }};
}
// 4 steps of 3 rows of 2 channels; both outputs are read.
OperatorCase Recurring(const std::string& op, const std::string& direction, int64_t gates,
                       const std::vector<NamedAttribute>& more, const std::string& what) {
  return {op + what, op, [=](B& b) {
            const int64_t d = direction == "bidirectional" ? 2 : 1;
            constexpr int64_t kHidden = 3;
            std::vector<NamedAttribute> attributes = more;
            attributes.emplace_back("direction", direction.c_str());
            attributes.emplace_back("hidden_size", kHidden);
            std::vector<std::string> inputs = {b.Parameter("x", {4, 3, 2}),
                                               b.Parameter("w", {d, gates * kHidden, 2}),
                                               b.Parameter("r", {d, gates * kHidden, kHidden}),
                                               b.Parameter("b", {d, 2 * gates * kHidden}),
                                               "",
                                               b.Parameter("h", {d, 3, kHidden})};
            if (op == "LSTM") {
              inputs.push_back(b.Parameter("c", {d, 3, kHidden}));
            }
            const std::string all = b.Node(op, inputs, attributes, op == "LSTM" ? 3 : 2);
            const std::string node = all.substr(0, all.size() - 2);
            std::vector<std::string> parts = {b.Node("Flatten", {all}, {{"axis", 0}}),
                                              b.Node("Flatten", {node + "/1"}, {{"axis", 0}})};
            if (op == "LSTM") {
              parts.push_back(b.Node("Flatten", {node + "/2"}, {{"axis", 0}}));
            }
            return b.Node("Concat", parts, {{"axis", 1}});
          }};
}

}  // namespace

std::vector<OperatorCase> OperatorCases() {
  std::vector<OperatorCase> cases = {
      Unary("Neg"),
      Unary("Sqrt"),
      Unary("Exp"),
      Unary("Reciprocal"),
      Unary("Log"),
      Unary("Abs"),
      Unary("Erf"),
      Unary("Relu"),
      Unary("LeakyRelu"),
      Unary("LeakyRelu", {{"alpha", 0.3}}, "Alpha"),
      Unary("Elu"),
      Unary("Elu", {{"alpha", -0.4}}, "NegativeAlpha"),
      Unary("Selu"),
      Unary("Gelu"),
      Unary("Gelu", {{"approximate", "tanh"}}, "Tanh"),
      Unary("Sigmoid"),
      Unary("Tanh"),
      Unary("Softplus"),
      Unary("Softsign"),
      Unary("L2Penalty"),  // of nothing: an identity; with an l2: FactorizationMachine.L2Pulls...
      Unary("WeightPenalty"),  // without penalties: an identity; KerasTest has it with them
      Unary("HardSigmoid", {{"alpha", 0.6}, {"beta", 0.4}}),
      Unary("Softmax"),
      Unary("Softmax", {{"axis", 0}}, "FirstAxis"),
      Unary("LogSoftmax"),
      Unary("LogSoftmax", {{"axis", 0}}, "FirstAxis"),
      Unary("Identity"),
      {"Clip", "Clip",
       [](B& b) {
         return b.Node("Clip",
                       {b.Parameter("x", {20}), b.Floats({-0.625F}, {}), b.Floats({0.51F}, {1})});
       }},
      Binary("Min", {2, 5}, {5}),
      Binary("Max", {3, 1}, {3, 4}),
      {"MaxOfThree", "Max",
       [](B& b) {
         return b.Node("Max",
                       {b.Parameter("x", {2, 3}), b.Floats({0.02F}, {}), b.Parameter("z", {3})});
       }},
      {"PowOfWholeNumbers", "Pow",
       [](B& b) {
         return b.Node("Pow", {b.Parameter("x", {11}), b.Integers({3})});
       }},
      {"PowSquare", "Pow",
       [](B& b) {
         return b.Node("Pow", {b.Parameter("x", {11}), b.Floats({2}, {})});
       }},
      {"PowOfNegativeBases", "Pow",
       [](B& b) {
         return b.Node("Pow", {b.Parameter("x", {11}), b.Floats({5}, {})});
       }},
      {"Where", "Where",
       [](B& b) {
         const std::string x = b.Parameter("x", {3, 4});
         const std::string less = b.Node("Less", {x, b.Floats({0.05F}, {})});
         return b.Node("Where", {less, x, b.Parameter("y", {4})});
       }},
      {"MatMul", "MatMul",
       [](B& b) {
         return b.Node("MatMul", {b.Parameter("x", {3, 4}), b.Parameter("y", {4, 5})});
       }},
      {"MatMulOfManyByOne", "MatMul",
       [](B& b) {
         return b.Node("MatMul", {b.Parameter("x", {2, 3, 4}), b.Parameter("y", {4, 2})});
       }},
      {"MatMulOfOneByMany", "MatMul",
       [](B& b) {
         return b.Node("MatMul", {b.Parameter("x", {3, 4}), b.Parameter("y", {2, 4, 2})});
       }},
      {"MatMulBatches", "MatMul",
       [](B& b) {
         return b.Node("MatMul", {b.Parameter("x", {2, 1, 3, 2}), b.Parameter("y", {3, 2, 4})});
       }},
      {"MatMulOfVectors", "MatMul",
       [](B& b) {
         return b.Node("MatMul", {b.Parameter("x", {5}), b.Parameter("y", {5})});
       }},
      {"MatMulByAVector", "MatMul",
       [](B& b) {
         return b.Node("MatMul", {b.Parameter("x", {2, 3, 4}), b.Parameter("y", {4})});
       }},
      {"BatchNormalization",
       "BatchNormalization",
       [](B& b) {
         return b.Node("BatchNormalization",
                       {b.Parameter("x", {5, 3}), b.Parameter("s", {3}), b.Parameter("b", {3}),
                        b.Parameter("m", {3}), b.Parameter("v", {3})});
       },
       false,
       {3, 4}},
      {"BatchNormalizationOfPlaces",
       "BatchNormalization",
       [](B& b) {
         return b.Node("BatchNormalization",
                       {b.Parameter("x", {3, 2, 4}), b.Parameter("s", {2}), b.Parameter("b", {2}),
                        b.Parameter("m", {2}), b.Parameter("v", {2})});
       },
       false,
       {3, 4}},
      {"LayerNormalization", "LayerNormalization",
       [](B& b) {
         return b.Node("LayerNormalization",
                       {b.Parameter("x", {4, 5}), b.Parameter("s", {5}), b.Parameter("b", {5})});
       }},
      {"LayerNormalizationOfTwoAxes", "LayerNormalization",
       [](B& b) {
         return b.Node("LayerNormalization",
                       {b.Parameter("x", {2, 3, 4}), b.Parameter("s", {3, 4})}, {{"axis", 1}});
       }},
      {"Dropout", "Dropout",
       [](B& b) {
         return b.Node("Dropout", {b.Parameter("x", {20}), b.Floats({0.4F}, {})});
       }},
      {"Gather", "Gather",
       [](B& b) {
         return b.Node("Gather", {b.Parameter("x", {4, 3}), b.Integers({2, 0, -1, 2}, {2, 2})});
       }},
      {"GatherLastAxis", "Gather",
       [](B& b) {
         return b.Node("Gather", {b.Parameter("x", {4, 3}), b.Integers({1}, {})}, {{"axis", -1}});
       }},
      {"GatherElements", "GatherElements",
       [](B& b) {
         return b.Node("GatherElements",
                       {b.Parameter("x", {3, 4}), b.Integers({1, 3, 0, 0, -1, 2}, {3, 2})},
                       {{"axis", 1}});
       }},
      {"Concat", "Concat",
       [](B& b) {
         const std::string x = b.Parameter("x", {2, 3});
         return b.Node("Concat", {x, b.Parameter("y", {2, 1}), x}, {{"axis", -1}});
       }},
      {"Split", "Split",
       [](B& b) {
         const std::string first =
             b.Node("Split", {b.Parameter("x", {2, 6}), b.Integers({2, 1, 3})}, {{"axis", 1}}, 3);
         const std::string node = first.substr(0, first.size() - 1);
         return b.Node("Concat", {node + "2", first}, {{"axis", 1}});  // the second is not read
       }},
      {"Shape", "Shape",
       [](B& b) {
         const std::string x = b.Parameter("x", {2, 3});
         return b.Node("Mul",
                       {x, b.Node("Cast", {b.Node("Shape", {x}, {{"start", 1}})}, {{"to", 1}})});
       }},
      {"ConstantOfShape", "ConstantOfShape",
       [](B& b) {
         return b.Node("Add",
                       {b.Parameter("x", {3}), b.Node("ConstantOfShape", {b.Integers({2, 1})})});
       }},
      {"Cast", "Cast",
       [](B& b) {
         return b.Node("Cast", {b.Parameter("x", {5})}, {{"to", 11}});
       }},
      {"UsedTwice", "Mul",
       [](B& b) {
         const std::string x = b.Parameter("x", {2, 3});
         const std::string y = b.Node("Tanh", {x});
         const std::string flat = b.Node("Reshape", {y, b.Integers({-1})});
         const std::string other = b.Node("Reshape", {b.Node("Exp", {y}), b.Integers({6})});
         return b.Node("Add", {b.Node("Mul", {flat, other}), flat});
       }},
  };
  for (const std::string op : {"Add", "Sub", "Mul", "Div", "Pow"}) {
    cases.push_back(Binary(op, {3, 4}, {3, 4}));
    cases.push_back(Binary(op, {3, 4}, {4}, "Row"));
    cases.push_back(Binary(op, {3, 4}, {3, 1}, "Column"));
    cases.push_back(Binary(op, {}, {2, 3}, "Number"));
    cases.push_back(Binary(op, {2, 1, 3, 1}, {4, 1, 2}, "BothRepeat"));
  }
  for (const int a : {0, 1}) {
    for (const int t : {0, 1}) {
      for (const int64_t n : {1, 5}) {
        const Shape addend = a == t ? Shape{n} : Shape{3, 1};
        cases.push_back({"Gemm" + std::to_string(a) + std::to_string(t) + "By" + std::to_string(n),
                         "Gemm", [=](B& b) {
                           return b.Node("Gemm",
                                         {b.Parameter("x", a == 1 ? Shape{4, 3} : Shape{3, 4}),
                                          b.Parameter("y", t == 1 ? Shape{n, 4} : Shape{4, n}),
                                          b.Parameter("z", addend)},
                                         {{"transA", a}, {"transB", t}});
                         }});
      }
    }
  }
  cases.push_back(
      {"GemmScaled", "Gemm", [](B& b) {
         return b.Node("Gemm",
                       {b.Parameter("x", {2, 3}), b.Parameter("y", {3, 4}), b.Parameter("z", {4})},
                       {{"alpha", 0.5}, {"beta", -1.5}});
       }});
  const auto conv = [&](const std::string& what, const Shape& x, const Shape& w,
                        const std::vector<NamedAttribute>& attributes, bool bias) {
    cases.push_back({"Conv" + what, "Conv", [=](B& b) {
                       std::vector<std::string> inputs = {b.Parameter("x", x), b.Parameter("w", w)};
                       if (bias) {
                         inputs.push_back(b.Parameter("b", {w[0]}));
                       }
                       return b.Node("Conv", inputs, attributes);
                     }});
  };
  conv("", {2, 2, 5}, {3, 2, 3}, {}, true);
  conv("Padded", {2, 2, 4}, {2, 2, 3}, {{"pads", std::vector<int64_t>{1, 2}}}, false);
  conv("Strided", {1, 2, 7}, {2, 2, 2},
       {{"strides", std::vector<int64_t>{2}}, {"dilations", std::vector<int64_t>{2}}}, true);
  conv("Groups", {2, 4, 3}, {2, 2, 2}, {{"group", 2}}, true);
  for (const std::string op : {"MaxPool", "AveragePool"}) {
    const std::vector<int64_t> two = {2}, three = {3}, pads = {1, 1};
    cases.push_back({op, op, [=](B& b) {
                       return b.Node(op, {b.Parameter("x", {2, 2, 5})}, {{"kernel_shape", three}});
                     }});
    cases.push_back(
        {op + "Padded", op, [=](B& b) {
           return b.Node(
               op, {b.Parameter("x", {1, 3, 6})},
               {{"kernel_shape", three}, {"strides", two}, {"pads", pads}, {"ceil_mode", 1}});
         }});
  }
  cases.push_back({"AveragePoolWithPadding", "AveragePool", [](B& b) {
                     return b.Node("AveragePool", {b.Parameter("x", {1, 3, 6})},
                                   {{"kernel_shape", std::vector<int64_t>{3}},
                                    {"pads", std::vector<int64_t>{1, 1}},
                                    {"count_include_pad", 1}});
                   }});
  for (const std::string op : {"GlobalMaxPool", "GlobalAveragePool"}) {
    cases.push_back({op, op, [=](B& b) { return b.Node(op, {b.Parameter("x", {2, 3, 4})}); }});
  }
  for (const std::string op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceSumSquare"}) {
    cases.push_back(Reduced(op, {}, "All"));
    cases.push_back(Reduced(op, {{"axes", std::vector<int64_t>{1}}, {"keepdims", 0}}, "Middle"));
    cases.push_back(Reduced(op, {{"axes", std::vector<int64_t>{0, -1}}}, "Outer"));
  }
  cases.push_back(OfShape("ByInput", "ReduceSum", {3, 4}, {{-1}}, {{"keepdims", 0}}));
  cases.push_back(OfShape("", "Reshape", {3, 4}, {{0, -1, 2}}));
  cases.push_back(OfShape("", "Flatten", {2, 3, 2}, {}, {{"axis", 2}}));
  cases.push_back(OfShape("", "Squeeze", {1, 4, 1}, {{0}}));
  cases.push_back(OfShape("All", "Squeeze", {1, 4, 1}, {}));
  cases.push_back(OfShape("", "Unsqueeze", {3, 2}, {{0, -1}}));
  cases.push_back(
      OfShape("ByAttribute", "Unsqueeze", {3}, {}, {{"axes", std::vector<int64_t>{1}}}));
  cases.push_back(
      OfShape("", "Transpose", {2, 3, 4}, {}, {{"perm", std::vector<int64_t>{2, 0, 1}}}));
  cases.push_back(OfShape("Reversed", "Transpose", {2, 3}, {}));
  cases.push_back(OfShape("", "Expand", {3, 1}, {{2, 1, 4}}));
  cases.push_back(OfShape("", "Pad", {2, 3}, {{0, 1, 2, 0}}));
  cases.push_back(OfShape("", "Slice", {4, 5}, {{1, 0}, {3, -1}}));
  cases.push_back(OfShape("Steps", "Slice", {7, 3}, {{-1, 0}, {-100, 3}, {0, 1}, {-2, 2}}));
  for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
    cases.push_back(Recurring("RNN", direction, 1, {}, direction));
    cases.push_back(Recurring("LSTM", direction, 4, {}, direction));
    cases.push_back(Recurring("GRU", direction, 3, {}, direction));
    cases.push_back(
        Recurring("GRU", direction, 3, {{"linear_before_reset", 1}}, direction + "ResetAfter"));
  }
  cases.push_back(
      Recurring("RNN", "forward", 1, {{"activations", std::vector<std::string>{"Relu"}}}, "Relu"));
  return cases;
}

}  // namespace sluice::models::graph
