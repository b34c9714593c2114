#include "models/graph/graph_output.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "models/graph/graph_run_internal.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

// Operators that may stand between the last function and the output.
constexpr std::array<std::string_view, 5> kSameNumbers = {"Identity", "Squeeze", "Unsqueeze",
                                                          "Flatten", "Reshape"};

// The only reader of the value, if it is a node; nullptr if there are several readers, or the
// graph's output is one.
GraphNode* OnlyMaker(const std::string& value, NetworkGraph* graph) {
  GraphNode* maker = nullptr;
  auto readers = std::count(graph->outputs().begin(), graph->outputs().end(), value);
  for (GraphNode& node : *graph->mutable_nodes()) {
    readers += std::count(node.inputs().begin(), node.inputs().end(), value);
    if (node.outputs_size() > 0 && node.outputs(0) == value) {
      maker = &node;
    }
  }
  return readers == 1 ? maker : nullptr;
}

std::string LeaveToTheLoss(NetworkGraph* graph, std::vector<std::string>* notes) {
  std::string value = graph->outputs_size() == 1 ? graph->outputs(0) : "";
  for (int step = 0; step < graph->nodes_size(); ++step) {
    GraphNode* node = OnlyMaker(value, graph);
    if (node == nullptr || node->inputs_size() == 0) {
      return "";
    }
    if (node->op_type() == "Sigmoid" || node->op_type() == "Softmax") {
      notes->push_back(fmt::format("the {} at the end is part of the loss, and of predictions",
                                   node->op_type()));
      std::string left = node->op_type();
      node->set_op_type("Identity");
      node->clear_attributes();
      return left;
    }
    if (std::find(kSameNumbers.begin(), kSameNumbers.end(), node->op_type()) ==
        kSameNumbers.end()) {
      return "";
    }
    value = node->inputs(0);
  }
  return "";
}

bool HasTwo(const NetworkGraph& graph) {
  constexpr int64_t kRows = 3;
  const auto run = graph::GraphRun::Make(graph, ActiveKernels());
  return run.ok() && (*run)->Plan(kRows).ok() && (*run)->output().shape == graph::Shape{kRows, 2};
}

}  // namespace

std::string FitOutput(size_t outputs, bool classes, NetworkGraph* graph,
                      std::vector<std::string>* notes) {
  if (!classes) {
    return "";
  }
  std::string left = LeaveToTheLoss(graph, notes);
  if (outputs != 1 || !HasTwo(*graph)) {
    return left;
  }
  const std::string both = graph->outputs(0);
  const std::string weights = both + "/of_two";
  GraphNode* constant = graph->add_nodes();
  constant->set_name(weights);
  constant->set_op_type("Constant");
  constant->add_outputs(weights);
  constant->mutable_constant()->add_shape(2);
  constant->mutable_constant()->add_shape(1);
  constant->mutable_constant()->add_numbers(-1);
  constant->mutable_constant()->add_numbers(1);
  GraphNode* difference = graph->add_nodes();
  difference->set_name(both + "/difference");
  difference->set_op_type("MatMul");
  difference->add_inputs(both);
  difference->add_inputs(weights);
  difference->add_outputs(both + "/difference");
  graph->set_outputs(0, both + "/difference");
  notes->push_back("of the outputs for two classes the second less the first counts");
  return left;
}

}  // namespace sluice::models
