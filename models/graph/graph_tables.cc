#include "models/graph/graph_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

struct Uses {
  std::string ids;     // the input by whose ids the first of them reads it
  bool other = false;  // than by these
};

bool AlongFirstAxis(const GraphNode& node) {
  for (const GraphAttribute& attribute : node.attributes()) {
    if (attribute.name() == "axis") {
      return attribute.integers_size() == 1 && attribute.integers(0) == 0;
    }
  }
  return true;
}

std::map<std::string, Uses> UsesOf(const NetworkGraph& graph) {
  std::set<std::string> ids;
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind() == GraphInput::IDS || input.kind() == GraphInput::BAG) {
      ids.insert(input.name());
    }
  }
  std::map<std::string, Uses> uses;
  for (const GraphNode& node : graph.nodes()) {
    const bool gathers =
        (node.op_type() == "Gather" && AlongFirstAxis(node)) || node.op_type() == "EmbeddingBag";
    for (int k = 0; k < node.inputs_size(); ++k) {
      Uses& own = uses[node.inputs(k)];
      if (!gathers || k > 0 || node.inputs_size() != 2 || !ids.contains(node.inputs(1))) {
        own.other = true;
        continue;
      }
      own.other = own.other || (!own.ids.empty() && own.ids != node.inputs(1));
      own.ids = node.inputs(1);
    }
  }
  for (const std::string& output : graph.outputs()) {
    uses[output].other = true;
  }
  return uses;
}

}  // namespace

const std::string& ValueOf(const GraphTable& table) {
  return table.value().empty() ? table.name() : table.value();
}

std::vector<std::string> MakeTables(NetworkGraph* graph) {
  const std::map<std::string, Uses> uses = UsesOf(*graph);
  std::vector<std::string> notes;
  google::protobuf::RepeatedPtrField<GraphParameter> whole;
  for (const GraphParameter& parameter : graph->parameters()) {
    const auto found = uses.find(parameter.name());
    const bool by_ids = found != uses.end() && !found->second.ids.empty();
    const bool learns =
        parameter.group() == GraphParameter::DEEP || parameter.group() == GraphParameter::WIDE;
    const bool matrix = parameter.shape_size() == 2 && parameter.shape(0) > 0 &&
                        parameter.shape(1) > 0 &&
                        parameter.shape(1) <= std::numeric_limits<uint32_t>::max();
    if (!by_ids || !matrix || !learns || found->second.other) {
      if (by_ids && matrix) {
        notes.push_back(
            fmt::format("{} ({} rows of {}) is pulled whole for every batch: it {}",
                        parameter.name(), parameter.shape(0), parameter.shape(1),
                        learns ? "has other uses beside its feature's ids" : "does not learn"));
      }
      *whole.Add() = parameter;
      continue;
    }
    GraphTable* table = graph->add_tables();
    table->set_name(parameter.name());
    table->add_inputs(found->second.ids);
    table->set_rows(parameter.shape(0));
    table->set_dimension(static_cast<uint32_t>(parameter.shape(1)));
    table->set_initializer(parameter.initializer());
    table->set_wide(parameter.group() == GraphParameter::WIDE);
  }
  graph->mutable_parameters()->Swap(&whole);
  return notes;
}

}  // namespace sluice::models
