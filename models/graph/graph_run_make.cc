#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "models/graph/graph_run_internal.h"
#include "models/graph/graph_tables.h"

// Checks that a graph can be run, and prepares it.
namespace sluice::models::graph {
namespace {

constexpr int64_t kMaxTableRows = int64_t{1} << 40;
constexpr uint32_t kWidestTable = 1 << 18;

bool Listed(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) {
      return true;
    }
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

// What computes the same, for operators that models of tables come with.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kInstead = {{
    {"TopK", "ReduceMax (torch.amax) is the largest along an axis; sorting has no counterpart"},
    {"CumSum", "a running sum along an axis is a product with a triangular matrix of ones"},
    {"Einsum",
     "MatMul of values that are transposed and reshaped (torch.matmul) computes the same"},
    {"NonZero", "how many rows a mask picks depends on the values: multiply by the mask instead"},
    {"InstanceNormalization", "LayerNormalization (nn.LayerNorm) or BatchNormalization normalise"},
    {"ScatterElements", "Where (torch.where) puts other values in places"},
}};

Result<const OperatorEntry*> EntryOf(const GraphNode& node) {
  const OperatorEntry* entry = FindOperator(node.op_type());
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const OperatorEntry& known : Operators()) {
      names.emplace_back(known.name);
    }
    Status status = Unimplemented(fmt::format("operator '{}' is not supported", node.op_type()));
    for (const auto& [op, instead] : kInstead) {
      if (op == node.op_type()) {
        return std::move(status).Hint(std::string(instead));
      }
    }
    if (const auto near = NearestName(node.op_type(), names)) {
      return std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
    }
    return std::move(status).Hint(fmt::format("there are {}", fmt::join(names, ", ")));
  }
  for (const GraphAttribute& attribute : node.attributes()) {
    if (!Listed(entry->attributes, attribute.name())) {
      return Unimplemented(fmt::format("attribute '{}' is not supported", attribute.name()));
    }
  }
  size_t inputs = 0;
  for (int k = 0; k < node.inputs_size(); ++k) {
    inputs = node.inputs(k).empty() ? inputs : static_cast<size_t>(k) + 1;
    if (node.inputs(k).empty() && static_cast<size_t>(k) < entry->least_inputs) {
      return InvalidArgument(fmt::format("input {} is left out", k + 1));
    }
  }
  if (inputs < entry->least_inputs || inputs > entry->most_inputs) {
    return InvalidArgument(
        fmt::format("{} inputs: it has {} to {}", inputs, entry->least_inputs, entry->most_inputs));
  }
  return entry;
}

}  // namespace

std::string NameOf(const GraphNode& node) {
  return node.name().empty() ? fmt::format("a node ({})", node.op_type())
                             : fmt::format("node '{}' ({})", node.name(), node.op_type());
}

GraphRun::GraphRun(const NetworkGraph& graph, const Kernels& kernels)
    : graph_(graph), kernels_(kernels) {}

Result<std::unique_ptr<GraphRun>> GraphRun::Make(const NetworkGraph& graph, const Kernels& kernels,
                                                 std::optional<int64_t> most_dense_bytes) {
  if (graph.nodes_size() > kMaxNodes) {
    return InvalidArgument(
               fmt::format("a graph of {} nodes: at most {}", graph.nodes_size(), kMaxNodes))
        .Hint("each is walked for every batch; a loop over rows or columns unrolls into nodes");
  }
  if (const size_t bytes = graph.ByteSizeLong(); bytes > kMaxGraphBytes) {
    return InvalidArgument(fmt::format("a graph of {} bytes: at most {}", bytes, kMaxGraphBytes))
        .Hint("large constants can be parameters");
  }
  std::unique_ptr<GraphRun> run(new GraphRun(graph, kernels));
  RETURN_IF_ERROR(run->AddInputs());
  RETURN_IF_ERROR(run->AddParameters(most_dense_bytes));
  RETURN_IF_ERROR(run->AddTables());
  RETURN_IF_ERROR(run->AddSteps());
  RETURN_IF_ERROR(run->CheckTables());
  return run;
}

Status GraphRun::AddTensor(const std::string& name) {
  if (name.empty()) {
    return InvalidArgument("a value has no name");
  }
  if (!names_.emplace(name, tensors_.size()).second) {
    return InvalidArgument(fmt::format("two values are called '{}'", name));
  }
  tensors_.emplace_back();
  return OkStatus();
}

Status GraphRun::AddInputs() {
  for (const GraphInput& input : graph_.inputs()) {
    RETURN_IF_ERROR(AddTensor(input.name()));
    Tensor& tensor = tensors_.back();
    switch (input.kind()) {
      case GraphInput::NUMBERS:
      case GraphInput::MASK:
      case GraphInput::LABEL:
        tensor.type = ElementType::kFloat;
        break;
      case GraphInput::IDS:
      case GraphInput::CLASS:
        tensor.type = ElementType::kInteger;
        break;
      case GraphInput::BAG:
        tensor.type = ElementType::kBag;
        break;
      default:
        return InvalidArgument(fmt::format("input '{}' is of no known kind", input.name()));
    }
  }
  return OkStatus();
}

Status GraphRun::AddParameters(std::optional<int64_t> most_bytes) {
  int64_t bytes = 0;
  for (const GraphParameter& parameter : graph_.parameters()) {
    RETURN_IF_ERROR(AddTensor(parameter.name()));
    Tensor& tensor = tensors_.back();
    tensor.shape.assign(parameter.shape().begin(), parameter.shape().end());
    if (most_bytes) {
      RETURN_IF_ERROR(
          CheckShape(tensor.shape).Because(fmt::format("parameter '{}'", parameter.name())));
      bytes += tensor.size() * static_cast<int64_t>(sizeof(float));
      if (bytes > *most_bytes) {
        return InvalidArgument(fmt::format("the dense parameters have more than {} MiB, with '{}'",
                                           *most_bytes >> 20, parameter.name()))
            .Hint(
                "they are pulled whole for every batch; rows that a category names become a table");
      }
    }
    tensor.trained = parameter.group() != GraphParameter::FROZEN;
    tensor.gradient_count = tensor.count();
  }
  return OkStatus();
}

Status GraphRun::AddTables() {
  for (const GraphTable& table : graph_.tables()) {
    if (table.rows() < 1 || table.rows() > kMaxTableRows || table.dimension() < 1 ||
        table.dimension() > kWidestTable) {
      return InvalidArgument(fmt::format("table '{}' has {} rows of {}", table.name(), table.rows(),
                                         table.dimension()));
    }
    RETURN_IF_ERROR(AddTensor(ValueOf(table)));
    tensors_.back().shape = {table.rows(), table.dimension()};
    tensors_.back().trained = true;
  }
  given_ = tensors_.size();
  return OkStatus();
}

Status GraphRun::AddSteps() {
  // Forwards: the inputs of each node must exist. Backwards: which nodes the output depends on.
  std::vector<const OperatorEntry*> entries;
  for (const GraphNode& node : graph_.nodes()) {
    Result<const OperatorEntry*> entry = EntryOf(node);
    if (!entry.ok()) {
      return entry.status().Because(NameOf(node));
    }
    entries.push_back(entry.value());
    for (const std::string& input : node.inputs()) {
      if (!input.empty() && !names_.contains(input)) {
        return InvalidArgument(
            fmt::format("{}: no value '{}' has been made before it", NameOf(node), input));
      }
    }
    for (const std::string& output : node.outputs()) {
      if (!output.empty()) {
        RETURN_IF_ERROR(AddTensor(output).Because(NameOf(node)));
      }
    }
  }
  if (graph_.outputs_size() != 1) {
    return InvalidArgument(fmt::format("a network has one output, not {}", graph_.outputs_size()));
  }
  const auto found = names_.find(graph_.outputs(0));
  if (found == names_.end() || found->second < given_) {
    return InvalidArgument(fmt::format("no node makes the output '{}'", graph_.outputs(0)));
  }
  output_ = found->second;
  readers_.assign(tensors_.size(), 0);
  readers_[output_] = 1;
  const std::vector<bool> of_output = CountReaders();
  std::vector<bool> needed = of_output;
  if (!graph_.loss().empty()) {
    const auto loss = names_.find(graph_.loss());
    if (loss == names_.end() || loss->second < given_) {
      return InvalidArgument(fmt::format("no node makes the loss '{}'", graph_.loss()));
    }
    loss_ = loss->second;
    readers_.assign(tensors_.size(), 0);
    readers_[output_] = readers_[*loss_] = 1;
    needed = CountReaders();
  }
  for (int i = 0; i < graph_.inputs_size(); ++i) {
    RETURN_IF_ERROR(CheckOfLoss(graph_.inputs(i), of_output));
  }
  for (size_t n = 0; n < entries.size(); ++n) {
    const GraphNode& node = graph_.nodes(static_cast<int>(n));
    if (!needed[n]) {
      continue;
    }
    Step& step = steps_.emplace_back(node);
    step.run = entries[n]->make();
    step.number = n;
    step.of_loss = !of_output[n];
    for (const std::string& input : node.inputs()) {
      step.context.inputs.push_back(input.empty() ? nullptr : &tensors_[names_.at(input)]);
    }
    for (const std::string& output : node.outputs()) {
      const bool read = !output.empty() && readers_[names_.at(output)] > 0;
      if (read && step.context.outputs.size() >= entries[n]->most_outputs) {
        return Unimplemented(fmt::format("{}: output {} is not supported", NameOf(node),
                                         step.context.outputs.size() + 1));
      }
      step.context.outputs.push_back(read ? &tensors_[names_.at(output)] : nullptr);
    }
  }
  for (Step& step : steps_) {  // now that the vector no longer moves them
    step.context.attributes = &step.attributes;
    step.context.kernels = &kernels_;
  }
  maker_.resize(tensors_.size());
  for (const Step& step : steps_) {
    for (const Tensor* output : step.context.outputs) {
      if (output != nullptr) {
        maker_[IndexOf(*output)] = &step;
      }
    }
  }
  numbers_.resize(tensors_.size());
  integers_.resize(tensors_.size());
  gradients_.resize(tensors_.size());
  return OkStatus();
}

// Which nodes the values depend on that have readers already; counts the readers of all others.
std::vector<bool> GraphRun::CountReaders() {
  std::vector<bool> needed(static_cast<size_t>(graph_.nodes_size()), false);
  for (size_t n = needed.size(); n-- > 0;) {
    const GraphNode& node = graph_.nodes(static_cast<int>(n));
    for (const std::string& output : node.outputs()) {
      needed[n] = needed[n] || (!output.empty() && readers_[names_.at(output)] > 0);
    }
    for (const std::string& input : node.inputs()) {
      if (needed[n] && !input.empty()) {
        ++readers_[names_.at(input)];
      }
    }
  }
  return needed;
}

// In prediction there is no label.
Status GraphRun::CheckOfLoss(const GraphInput& input, const std::vector<bool>& of_output) const {
  if (input.kind() != GraphInput::LABEL && input.kind() != GraphInput::CLASS) {
    return OkStatus();
  }
  for (size_t n = 0; n < of_output.size(); ++n) {
    const GraphNode& node = graph_.nodes(static_cast<int>(n));
    if (of_output[n] && std::find(node.inputs().begin(), node.inputs().end(), input.name()) !=
                            node.inputs().end()) {
      return InvalidArgument(fmt::format("{}: the output depends on the label", NameOf(node)));
    }
  }
  return OkStatus();
}

Status GraphRun::CheckReaders(const GraphTable& table) const {
  const bool one_each =
      table.first_rows().empty() || table.first_rows_size() == table.inputs_size();
  const bool inside =
      std::all_of(table.first_rows().begin(), table.first_rows().end(),
                  [&](int64_t first) { return first >= 0 && first <= table.rows(); });
  if (table.inputs().empty() || !one_each || !inside) {
    return InvalidArgument(
        fmt::format("table '{}' has no place for the ids that are its rows", table.name()));
  }
  std::set<std::string> seen;
  for (const std::string& name : table.inputs()) {
    const auto found = names_.find(name);
    const bool input =
        found != names_.end() && found->second < static_cast<size_t>(graph_.inputs_size());
    const GraphInput::Kind kind =
        input ? graph_.inputs(static_cast<int>(found->second)).kind() : GraphInput::NUMBERS;
    if (kind != GraphInput::IDS && kind != GraphInput::BAG) {
      return InvalidArgument(
          fmt::format("table '{}' is read by '{}', which is no feature's ids", table.name(), name));
    }
    if (!seen.insert(name).second) {
      return InvalidArgument(fmt::format("table '{}' names '{}' twice", table.name(), name));
    }
  }
  return OkStatus();
}

// Whether the node, whose first input is a table, reads it only by ids that are its rows: `own`,
// the table's inputs.
bool GraphRun::ReadsByIds(const Step& step, const TableInputs& own) {
  const GraphNode& node = *step.node;
  if (node.op_type() == "Gather") {
    return step.attributes.Integer("axis", 0) == 0 && own.contains(node.inputs(1));
  }
  if (node.op_type() != "EmbeddingBag") {
    return false;
  }
  for (int k = 1; k < node.inputs_size(); ++k) {
    const Tensor* input = step.context.inputs[static_cast<size_t>(k)];
    if (input != nullptr && input->type == ElementType::kBag && !own.contains(node.inputs(k))) {
      return false;
    }
  }
  return true;
}

Status GraphRun::CheckTables() const {
  struct Known {
    const GraphTable* table;
    TableInputs inputs;
  };
  std::unordered_map<std::string, Known> tables;
  for (const GraphTable& table : graph_.tables()) {
    RETURN_IF_ERROR(CheckReaders(table));
    tables.emplace(ValueOf(table),
                   Known{&table, TableInputs(table.inputs().begin(), table.inputs().end())});
  }
  for (const Step& step : steps_) {
    const GraphNode& node = *step.node;
    for (int k = 0; k < node.inputs_size(); ++k) {
      const auto table = tables.find(node.inputs(k));
      if (table == tables.end()) {
        continue;
      }
      if (k != 0 || !ReadsByIds(step, table->second.inputs)) {
        return InvalidArgument(fmt::format(
            "{}: table '{}' can only be read by Gather or EmbeddingBag with the ids of '{}'",
            NameOf(node), table->second.table->name(),
            fmt::join(table->second.table->inputs(), "', '")));
      }
    }
  }
  return OkStatus();
}

}  // namespace sluice::models::graph
