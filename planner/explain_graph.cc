#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "models/graph/graph_tables.h"
#include "planner/explain_internal.h"
#include "planner/grouped_number.h"

namespace sluice::planner {
namespace {

// Lines of each list; a graph may have thousands of nodes.
constexpr size_t kMaxLines = 60;

void Shorten(std::vector<std::string>* lines) {
  if (lines->size() > kMaxLines) {
    const size_t more = lines->size() - kMaxLines;
    lines->resize(kMaxLines);
    lines->push_back(fmt::format("... {} more", GroupDigits(static_cast<int64_t>(more))));
  }
}

// "deep/0" for "deep/0/product"; "" if the name has no parts.
std::string LayerOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

std::vector<std::string> LayersOf(const models::NetworkGraph& graph, int64_t* operators) {
  std::set<std::string> tables;
  for (const models::GraphTable& table : graph.tables()) {
    tables.insert(models::ValueOf(table));
  }
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> layers;
  for (const models::GraphNode& node : graph.nodes()) {
    if (node.op_type() == "Constant") {
      continue;
    }
    ++*operators;
    if (node.inputs_size() > 0 && tables.contains(node.inputs(0))) {
      continue;  // listed with its table
    }
    const std::string layer = LayerOf(node.name());
    std::vector<std::string>& own = layers[layer];
    if (own.empty()) {
      order.push_back(layer);
    }
    own.push_back(node.op_type());
  }
  std::vector<std::string> lines;
  lines.reserve(order.size());
  for (const std::string& layer : order) {
    lines.push_back(fmt::format("{}: {}", layer.empty() ? "beside layers" : layer,
                                fmt::join(layers[layer], ", ")));
  }
  return lines;
}

std::string GroupOf(const models::GraphParameter& parameter) {
  switch (parameter.group()) {
    case models::GraphParameter::STATISTICS:
      return ", follows the batches";
    case models::GraphParameter::FROZEN:
      return ", frozen";
    default:
      return "";
  }
}

std::string StartOf(const std::string& initializer) {
  return initializer.empty() ? "" : ", " + initializer;
}

}  // namespace

GraphLines DescribeGraph(const models::NetworkGraph& graph) {
  GraphLines lines;
  lines.layers = LayersOf(graph, &lines.operators);
  for (const models::GraphParameter& parameter : graph.parameters()) {
    int64_t size = 1;
    for (const int64_t extent : parameter.shape()) {
      size *= extent;
    }
    lines.numbers += size;
    lines.parameters.push_back(fmt::format("{}: [{}]{}{}", parameter.name(),
                                           fmt::join(parameter.shape(), ", "),
                                           StartOf(parameter.initializer()), GroupOf(parameter)));
  }
  for (const models::GraphTable& table : graph.tables()) {
    lines.rows += table.rows();
    lines.tables.push_back(fmt::format("{}: {} row{} of {}{}", table.name(),
                                       GroupDigits(table.rows()), table.rows() == 1 ? "" : "s",
                                       table.dimension(), StartOf(table.initializer())));
  }
  for (std::vector<std::string>* list : {&lines.layers, &lines.parameters, &lines.tables}) {
    Shorten(list);
  }
  return lines;
}

}  // namespace sluice::planner
