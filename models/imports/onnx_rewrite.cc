#include <fmt/core.h>

#include <utility>

#include "models/imports/onnx_rewrite_internal.h"

namespace sluice::models {
namespace {

void Name(const std::string& output, GraphNode* node) {
  node->clear_outputs();
  node->add_outputs(output);
}

// x for x > 0, else slope times x.
void AddPRelu(const GraphNode& node, const std::string& base, NetworkGraph* graph) {
  const std::string above = AddNode("Relu", {node.inputs(0)}, base + "/above", graph);
  const std::string minus = AddNode("Neg", {node.inputs(0)}, base + "/minus", graph);
  const std::string below = AddNode("Relu", {minus}, base + "/below", graph);
  const std::string scaled = AddNode("Mul", {below, node.inputs(1)}, base + "/scaled", graph);
  AddNode("Sub", {above, scaled}, base, graph);
}

void AddHardSwish(const GraphNode& node, const std::string& base, NetworkGraph* graph) {
  const std::string gate = AddNode("HardSigmoid", {node.inputs(0)}, base + "/gate", graph);
  GraphNode* made = graph->mutable_nodes(graph->nodes_size() - 1);
  for (const auto& [name, value] : {std::pair("alpha", 1.0F / 6), std::pair("beta", 0.5F)}) {
    GraphAttribute* attribute = made->add_attributes();
    attribute->set_name(name);
    attribute->add_numbers(value);
  }
  AddNode("Mul", {node.inputs(0), gate}, base, graph);
}

// a >= b as not (a < b); they differ only for NaN, which ends a training anyway.
void AddNot(const GraphNode& node, const char* op, const std::string& base, NetworkGraph* graph) {
  const std::string other =
      AddNode(op, {node.inputs().begin(), node.inputs().end()}, base + "/other", graph);
  AddNode("Not", {other}, base, graph);
}

void AddSum(const GraphNode& node, const std::string& base, bool mean, NetworkGraph* graph) {
  std::string sum = node.inputs(0);
  for (int k = 1; k < node.inputs_size(); ++k) {
    const bool last = k + 1 == node.inputs_size() && !mean;
    sum = AddNode("Add", {sum, node.inputs(k)}, last ? base : fmt::format("{}/{}", base, k), graph);
  }
  if (mean) {
    const std::string count =
        AddNumber(static_cast<float>(node.inputs_size()), base + "/count", graph);
    AddNode("Div", {sum, count}, base, graph);
  } else if (node.inputs_size() == 1) {
    AddNode("Identity", {sum}, base, graph);
  }
}

void AddReduceMin(GraphNode node, const std::string& base, NetworkGraph* graph) {
  const std::string minus = AddNode("Neg", {node.inputs(0)}, base + "/minus", graph);
  node.set_inputs(0, minus);
  node.set_op_type("ReduceMax");
  Name(base + "/most", &node);
  *graph->add_nodes() = std::move(node);
  AddNode("Neg", {base + "/most"}, base, graph);
}

// The loss of each row, by its class id: -log softmax at that place, or, of log probabilities, what
// stands there. A third input weighs the classes.
Status AddCrossEntropy(const GraphNode& node, const std::string& base, NetworkGraph* graph) {
  for (const GraphAttribute& attribute : node.attributes()) {
    const bool none = attribute.name() != "reduction" ||
                      (attribute.texts_size() == 1 && attribute.texts(0) == "none");
    const bool all = attribute.name() != "ignore_index" ||
                     (attribute.integers_size() == 1 && attribute.integers(0) < 0);
    if (!none || !all) {
      return Unimplemented(
                 fmt::format("{} of {} is not supported", attribute.name(), node.op_type()))
          .Hint(none ? "leave ignore_index out" : "reduction='none' leaves the mean to Sluice");
    }
  }
  std::string logs = node.inputs(0);
  if (node.op_type() == "SoftmaxCrossEntropyLoss") {
    logs = AddNode("LogSoftmax", {logs}, base + "/logs", graph);
  }
  const std::string axis = AddIntegers({1}, base + "/axis", graph);
  const std::string ids = AddNode("Unsqueeze", {node.inputs(1), axis}, base + "/ids", graph);
  const std::string own = AddNode("GatherElements", {logs, ids}, base + "/own", graph);
  GraphAttribute* along = graph->mutable_nodes(graph->nodes_size() - 1)->add_attributes();
  along->set_name("axis");
  along->add_integers(1);
  const std::string flat = AddNode("Squeeze", {own, axis}, base + "/flat", graph);
  const bool weighs = node.inputs_size() > 2 && !node.inputs(2).empty();
  const std::string minus = AddNode("Neg", {flat}, weighs ? base + "/minus" : base, graph);
  if (weighs) {
    const std::string weight =
        AddNode("Gather", {node.inputs(2), node.inputs(1)}, base + "/weight", graph);
    AddNode("Mul", {minus, weight}, base, graph);
  }
  return OkStatus();
}

}  // namespace

std::string AddNode(const std::string& op, const std::vector<std::string>& inputs,
                    const std::string& name, NetworkGraph* graph) {
  GraphNode* node = graph->add_nodes();
  node->set_name(name);
  node->set_op_type(op);
  node->mutable_inputs()->Add(inputs.begin(), inputs.end());
  node->add_outputs(name);
  return name;
}

std::string AddNumber(float value, const std::string& name, NetworkGraph* graph) {
  AddNode("Constant", {}, name, graph);
  graph->mutable_nodes(graph->nodes_size() - 1)->mutable_constant()->add_numbers(value);
  return name;
}

std::string AddIntegers(const std::vector<int64_t>& values, const std::string& name,
                        NetworkGraph* graph) {
  AddNode("Constant", {}, name, graph);
  GraphTensor* tensor = graph->mutable_nodes(graph->nodes_size() - 1)->mutable_constant();
  tensor->set_type(GraphTensor::INTEGER);
  tensor->add_shape(static_cast<int64_t>(values.size()));
  tensor->mutable_integers()->Add(values.begin(), values.end());
  return name;
}

Status RewriteOperator(GraphNode node, NetworkGraph* graph) {
  const std::string& op = node.op_type();
  const bool entropy = op == "SoftmaxCrossEntropyLoss" || op == "NegativeLogLikelihoodLoss";
  if (entropy && node.inputs_size() >= 2 && node.outputs_size() >= 1 && !node.outputs(0).empty()) {
    return AddCrossEntropy(node, node.outputs(0), graph);
  }
  const bool pair = op == "PRelu" || op == "GreaterOrEqual" || op == "LessOrEqual";
  const bool rewritten =
      pair || op == "HardSwish" || op == "Sum" || op == "Mean" || op == "ReduceMin";
  if (!rewritten) {
    *graph->add_nodes() = std::move(node);
    return OkStatus();
  }
  if (node.inputs_size() < (pair ? 2 : 1) || node.outputs_size() != 1 || node.outputs(0).empty()) {
    return InvalidArgument(
        fmt::format("{} inputs and {} outputs", node.inputs_size(), node.outputs_size()));
  }
  const std::string base = node.outputs(0);
  if (op == "PRelu") {
    AddPRelu(node, base, graph);
  } else if (op == "HardSwish") {
    AddHardSwish(node, base, graph);
  } else if (op == "GreaterOrEqual" || op == "LessOrEqual") {
    AddNot(node, op == "LessOrEqual" ? "Greater" : "Less", base, graph);
  } else if (op == "ReduceMin") {
    AddReduceMin(std::move(node), base, graph);
  } else {
    AddSum(node, base, op == "Mean", graph);
  }
  return OkStatus();
}

}  // namespace sluice::models
