#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "models/imports/onnx_rewrite_internal.h"
#include "models/imports/own_loss_internal.h"

namespace sluice::models {
namespace {

// Names of the values that are added begin with this; those of the loss's file with "loss/".
constexpr char kOurs[] = "loss:";

std::string AddVector(const std::vector<double>& values, const std::string& name,
                      NetworkGraph* graph) {
  AddNode("Constant", {}, name, graph);
  GraphTensor* tensor = graph->mutable_nodes(graph->nodes_size() - 1)->mutable_constant();
  tensor->add_shape(static_cast<int64_t>(values.size()));
  for (const double value : values) {
    tensor->add_numbers(static_cast<float>(value));
  }
  return name;
}

// A value as the label is, and less the label's mean.
struct OwnUnit {
  std::string value;
  std::string centred;
};

// Numbers are learnt as (y - mean) / scale: the value as y is.
OwnUnit InOwnScale(const std::string& value, const LabelPlan& label, const std::string& name,
                   NetworkGraph* graph) {
  std::vector<double> means(label.means().begin(), label.means().end());
  std::vector<double> scales(label.scales().begin(), label.scales().end());
  if (label.kind() == LabelPlan::NUMBER) {
    means = {label.mean()};
    scales = {label.scale()};
  }
  if (label.kind() == LabelPlan::CLASS || means.empty() || scales.size() != means.size()) {
    return {value, value};
  }
  const std::string base = kOurs + name;
  const std::string scale = AddVector(scales, base + "/scale", graph);
  const std::string mean = AddVector(means, base + "/mean", graph);
  const std::string scaled = AddNode("Mul", {value, scale}, base + "/scaled", graph);
  return {AddNode("Add", {scaled, mean}, base + "/own", graph), scaled};
}

OwnUnit AddLabel(const LabelPlan& label, size_t width, NetworkGraph* graph) {
  GraphInput* input = graph->add_inputs();
  input->set_name(std::string(kOurs) + "label");
  const bool ids = label.kind() == LabelPlan::CLASS && width > 1;
  input->set_kind(ids ? GraphInput::CLASS : GraphInput::LABEL);
  if (label.kind() == LabelPlan::VECTOR) {
    input->set_width(label.width());
  }
  return InOwnScale(input->name(), label, "of label", graph);
}

// Whether it subtracts or compares the output and the label. What it makes does not depend on the
// label's mean, beside which 32 bits may not tell labels apart.
bool IsDifference(const GraphNode& node) {
  const auto reads = [&node](const char* name) {
    return std::find(node.inputs().begin(), node.inputs().end(), name) != node.inputs().end();
  };
  const std::string& type = node.op_type();
  return (type == "Sub" || type == "Greater" || type == "Less" || type == "Equal") &&
         reads("output") && reads("label");
}

}  // namespace

Status AttachLoss(OwnLoss loss, const std::string& output, const std::string& left,
                  const LabelPlan& label, ImportedNetwork* network) {
  if (label.curve() != LabelPlan::STRAIGHT) {
    return InvalidArgument(
               "attribute train.label_scale has no effect on loss() of the source, "
               "which gets the label as it is")
        .Hint("leave it out, or name a loss: model.loss='squared'");
  }
  NetworkGraph* graph = &network->graph;
  std::string given = output;
  if (!left.empty()) {  // the loss gets what the module returns
    given = AddNode(left, {given}, std::string(kOurs) + left, graph);
  }
  if (loss.width == 1 && label.kind() != LabelPlan::VECTOR) {
    const std::string rows = AddIntegers({-1}, std::string(kOurs) + "rows", graph);
    given = AddNode("Reshape", {given, rows}, std::string(kOurs) + "output", graph);
  }
  const OwnUnit own_output = InOwnScale(given, label, "of output", graph);
  const OwnUnit truth = AddLabel(label, loss.width, graph);
  const auto renamed = [&](const std::string& name) {
    return name.empty()       ? ""
           : name == "output" ? own_output.value
           : name == "label"  ? truth.value
                              : "loss/" + name;
  };
  for (const GraphParameter& parameter : loss.network.graph.parameters()) {
    const auto values = loss.network.values.find(parameter.name());
    if (values == loss.network.values.end()) {
      return InvalidArgument(fmt::format("'{}' of the loss has no values", parameter.name()));
    }
    AddNode("Constant", {}, renamed(parameter.name()), graph);
    GraphTensor* constant = graph->mutable_nodes(graph->nodes_size() - 1)->mutable_constant();
    *constant->mutable_shape() = parameter.shape();
    constant->mutable_numbers()->Assign(values->second.begin(), values->second.end());
  }
  for (GraphNode& node : *loss.network.graph.mutable_nodes()) {
    const bool difference = IsDifference(node);
    for (std::string& name : *node.mutable_inputs()) {
      name = !difference ? renamed(name) : name == "output" ? own_output.centred : truth.centred;
    }
    for (std::string& name : *node.mutable_outputs()) {
      name = renamed(name);
    }
    const size_t begin = node.name().find_first_not_of('/');
    const std::string own = begin == std::string::npos ? "" : node.name().substr(begin);
    node.set_name(own.starts_with("loss/") ? own : "loss/" + own);
    *graph->add_nodes() = std::move(node);
  }
  graph->set_loss(renamed(loss.network.graph.outputs(0)));
  return OkStatus();
}

}  // namespace sluice::models
