#include "models/graph/graph_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr double kBatchNormMomentum = 0.9;

}  // namespace

GraphWriter::GraphWriter() : graph_(std::make_unique<NetworkGraph>()) {}
GraphWriter::~GraphWriter() = default;

std::string GraphWriter::Fresh(std::string_view op) {
  return fmt::format("{}_{}", op, ++next_);
}

GraphValue GraphWriter::Numbers(const std::vector<GraphFeature>& features,
                                const std::string& name) {
  GraphInput input;
  for (const GraphFeature& feature : features) {
    if (!feature.category) {
      input.add_features(feature.name);
      input.set_width(input.width() + feature.width);
    }
  }
  if (input.width() == 0) {
    return {};
  }
  input.set_name(name);
  input.set_kind(GraphInput::NUMBERS);
  *graph_->add_inputs() = input;
  return {name, input.width()};
}

GraphValue GraphWriter::Embedding(const std::string& scope, const GraphFeature& feature,
                                  int64_t dimension, const std::string& initializer) {
  return EmbeddingParts(scope, feature, {dimension}, initializer).front();
}

std::vector<GraphValue> GraphWriter::EmbeddingParts(const std::string& scope,
                                                    const GraphFeature& feature,
                                                    const std::vector<int64_t>& widths,
                                                    const std::string& initializer) {
  const int64_t columns = std::accumulate(widths.begin(), widths.end(), int64_t{0});
  const std::string table = Table(scope + "/" + feature.name, {feature}, columns, initializer);
  std::vector<GraphValue> parts;
  int64_t begin = 0;
  for (const int64_t width : widths) {
    parts.push_back(Rows(table, {feature}, width, feature.combiner));
    if (width < columns) {
      SetIntegers("columns", {begin, begin + width});
    }
    begin += width;
  }
  return parts;
}

std::string GraphWriter::Bag(const GraphFeature& feature) {
  std::string name = "ids/" + feature.name;
  if (bags_.insert(name).second) {
    GraphInput* input = graph_->add_inputs();
    input->set_name(name);
    input->set_kind(GraphInput::BAG);
    input->add_features(feature.name);
  }
  return name;
}

std::string GraphWriter::Table(const std::string& name, const std::vector<GraphFeature>& features,
                               int64_t dimension, const std::string& initializer) {
  GraphTable table;
  for (const GraphFeature& feature : features) {
    table.add_inputs(Bag(feature));
    table.add_first_rows(table.rows());
    table.set_rows(table.rows() + feature.buckets);
  }
  table.set_name(name);
  table.set_value(Fresh("table"));
  table.set_dimension(static_cast<uint32_t>(dimension));
  table.set_initializer(initializer);
  table.set_wide(wide_);
  *graph_->add_tables() = table;
  return table.value();
}

GraphValue GraphWriter::Rows(const std::string& table, const std::vector<GraphFeature>& features,
                             int64_t dimension, const std::string& combiner,
                             const std::string& start) {
  std::vector<std::string> inputs = {table};
  for (const GraphFeature& feature : features) {
    inputs.push_back(Bag(feature));
  }
  if (!start.empty()) {
    inputs.push_back(start);
  }
  GraphValue rows = Node("EmbeddingBag", inputs, dimension);
  AddAttribute("combiner")->add_texts(combiner);
  return rows;
}

GraphValue GraphWriter::Ids(const GraphFeature& feature) {
  GraphInput* input = graph_->add_inputs();
  input->set_name("id/" + feature.name);
  input->set_kind(GraphInput::IDS);
  input->add_features(feature.name);
  return {input->name(), 1};
}

GraphValue GraphWriter::Label() {
  GraphInput* input = graph_->add_inputs();
  input->set_name("label");
  input->set_kind(GraphInput::LABEL);
  return {input->name(), 1};
}

std::string GraphWriter::Parameter(const std::string& name, const std::vector<int64_t>& shape,
                                   const std::string& initializer) {
  GraphParameter* parameter = graph_->add_parameters();
  parameter->set_name(name);
  parameter->mutable_shape()->Add(shape.begin(), shape.end());
  parameter->set_initializer(initializer);
  parameter->set_group(wide_ ? GraphParameter::WIDE : GraphParameter::DEEP);
  return name;
}

GraphValue GraphWriter::Node(const std::string& op, const std::vector<std::string>& inputs,
                             int64_t width, const std::string& name) {
  GraphNode* node = graph_->add_nodes();
  node->set_op_type(op);
  node->set_name(name.empty() ? Fresh(op) : name);
  node->mutable_inputs()->Add(inputs.begin(), inputs.end());
  node->add_outputs(node->name());
  return {node->name(), width};
}

GraphAttribute* GraphWriter::AddAttribute(std::string_view name) {
  GraphAttribute* attribute = graph_->mutable_nodes(graph_->nodes_size() - 1)->add_attributes();
  attribute->set_name(std::string(name));
  return attribute;
}

void GraphWriter::SetIntegers(std::string_view attribute, const std::vector<int64_t>& values) {
  AddAttribute(attribute)->mutable_integers()->Add(values.begin(), values.end());
}

std::string GraphWriter::Scalar(float value) {
  std::string name = Node("Constant", {}, 1).name;
  GraphTensor* constant = graph_->mutable_nodes(graph_->nodes_size() - 1)->mutable_constant();
  constant->add_numbers(value);
  return name;
}

std::string GraphWriter::Shape(const std::vector<int64_t>& shape) {
  std::string name = Node("Constant", {}, 1).name;
  GraphTensor* constant = graph_->mutable_nodes(graph_->nodes_size() - 1)->mutable_constant();
  constant->set_type(GraphTensor::INTEGER);
  constant->add_shape(static_cast<int64_t>(shape.size()));
  constant->mutable_integers()->Add(shape.begin(), shape.end());
  return name;
}

GraphValue GraphWriter::Add(const GraphValue& a, const GraphValue& b) {
  if (!a || !b) {
    return a ? a : b;
  }
  return Node("Add", {a.name, b.name}, std::max(a.width, b.width));
}

GraphValue GraphWriter::Multiply(const GraphValue& a, const GraphValue& b) {
  return Node("Mul", {a.name, b.name}, std::max(a.width, b.width));
}

GraphValue GraphWriter::Scale(const GraphValue& a, float factor) {
  const std::string scalar = Scalar(factor);
  return Node("Mul", {a.name, scalar}, a.width);
}

GraphValue GraphWriter::Concat(const std::vector<GraphValue>& values, const std::string& name) {
  std::vector<std::string> names;
  GraphValue all;
  for (const GraphValue& value : values) {
    if (value) {
      names.push_back(value.name);
      all.width += value.width;
      all.name = value.name;
    }
  }
  if (names.size() < 2) {
    return all;
  }
  all = Node("Concat", names, all.width, name);
  SetIntegers("axis", {1});
  return all;
}

GraphValue GraphWriter::Slice(const GraphValue& value, int64_t begin, int64_t end) {
  if (begin == 0 && end == value.width) {
    return value;
  }
  const std::string from = Shape({begin});
  const std::string to = Shape({end});
  const std::string axes = Shape({1});
  return Node("Slice", {value.name, from, to, axes}, end - begin);
}

GraphValue GraphWriter::Stacked(const GraphValue& beside, int64_t count) {
  const std::string shape = Shape({0, count, beside.width / count});
  return Node("Reshape", {beside.name, shape}, beside.width / count);
}

GraphValue GraphWriter::SumOf(const GraphValue& stacked, bool squared) {
  GraphValue sum = Node(squared ? "ReduceSumSquare" : "ReduceSum", {stacked.name}, stacked.width);
  SetIntegers("axes", {1});
  SetIntegers("keepdims", {0});
  return sum;
}

GraphValue GraphWriter::SumOfRow(const GraphValue& value) {
  GraphValue sum = Node("ReduceSum", {value.name}, 1);
  SetIntegers("axes", {1});
  return sum;
}

GraphValue GraphWriter::LogSoftmax(const GraphValue& value) {
  return Node("LogSoftmax", {value.name}, value.width);
}

GraphValue GraphWriter::Column(const GraphValue& of_rows) {
  const std::string shape = Shape({-1, 1});
  return Node("Reshape", {of_rows.name, shape}, 1);
}

GraphValue GraphWriter::Turned(const GraphValue& value) {
  GraphValue turned = Node("Transpose", {value.name}, value.width);
  SetIntegers("perm", {1, 0});
  return turned;
}

void GraphWriter::SetLoss(const GraphValue& value) {
  const std::string shape = Shape({-1});
  graph_->set_loss(Node("Reshape", {value.name, shape}, 1, "loss").name);
}

GraphValue GraphWriter::Bounded(const GraphValue& value, float bound) {
  if (!value) {
    return value;
  }
  const GraphValue square = Scale(Multiply(value, value), 1.0F / (bound * bound));
  const std::string one = Scalar(1);
  const GraphValue above = Node("Add", {one, square.name}, value.width);
  const GraphValue root = Node("Sqrt", {above.name}, value.width);
  return Node("Div", {value.name, root.name}, value.width);
}

GraphValue GraphWriter::Dense(const std::string& name, const GraphValue& value, int64_t width,
                              const std::string& initializer, bool bias) {
  std::vector<std::string> inputs = {
      value.name, Parameter(name + "/kernel", {value.width, width}, initializer)};
  if (bias) {
    inputs.push_back(Parameter(name + "/bias", {width}, "zeros"));
  }
  const GraphValue product = Node("Gemm", inputs, width, name + "/product");
  if (value.width == 1 && width > 1) {
    SetIntegers("dots", {0});
  }
  return product;
}

GraphValue GraphWriter::Activate(const GraphValue& value, const std::string& function,
                                 const std::string& name) {
  const GraphActivation& activation = FindActivation(function.empty() ? "relu" : function);
  GraphValue active = Node(activation.op, {value.name}, value.width, name);
  for (const auto& [attribute, number] :
       {std::pair{"alpha", activation.alpha}, std::pair{"gamma", activation.gamma}}) {
    if (number != 0) {
      AddAttribute(attribute)->add_numbers(number);
    }
  }
  if (function == "gelu") {
    AddAttribute("approximate")->add_texts("tanh");
  }
  return active;
}

GraphValue GraphWriter::Normalised(const std::string& layer, const GraphValue& value) {
  std::vector<std::string> inputs = {value.name};
  for (const auto& [part, initializer] :
       {std::pair{"scale", "ones"}, std::pair{"shift", "zeros"}, std::pair{"mean", "zeros"},
        std::pair{"variance", "ones"}}) {
    inputs.push_back(Parameter(fmt::format("{}/norm/{}", layer, part), {value.width}, initializer));
    if (inputs.size() > 3) {
      GraphParameter* own = graph_->mutable_parameters(graph_->parameters_size() - 1);
      own->set_group(GraphParameter::STATISTICS);
      own->set_momentum(kBatchNormMomentum);
    }
  }
  return Node("BatchNormalization", inputs, value.width, layer + "/norm");
}

GraphValue GraphWriter::Layer(const std::string& name, const GraphValue& value, int64_t units,
                              const std::string& initializer) {
  const GraphValue product = Dense(name, value, units, initializer);
  if (units == 1) {
    SetIntegers("dots", {0});
  }
  return product;
}

GraphValue GraphWriter::Hidden(const std::string& scope, const GraphValue& value,
                               const GraphHiddenLayers& layers) {
  if (layers.units.empty()) {
    return value;
  }
  const auto units = static_cast<int64_t>(layers.units.front());
  return HiddenAfter(scope, Layer(scope + "/0", value, units), layers);
}

GraphValue GraphWriter::HiddenAfter(const std::string& scope, const GraphValue& first,
                                    const GraphHiddenLayers& layers) {
  GraphValue value = first;
  for (size_t layer = 0; layer < layers.units.size(); ++layer) {
    const std::string name = fmt::format("{}/{}", scope, layer);
    const auto width = static_cast<int64_t>(layers.units[layer]);
    value = layer == 0 ? value : Layer(name, value, width);
    value = layers.batch_norm ? Normalised(name, value) : value;
    value = Activate(value, layers.activation, name + "/active");
    if (layers.dropout > 0) {
      const std::string ratio = Scalar(static_cast<float>(layers.dropout));
      value = Node("Dropout", {value.name, ratio}, width, name + "/dropout");
    }
  }
  return value;
}

GraphValue GraphWriter::Penalised(const GraphValue& value, double l2) {
  if (!value || l2 <= 0) {
    return value;
  }
  GraphValue same = Node("L2Penalty", {value.name}, value.width);
  AddAttribute("l2")->add_numbers(static_cast<float>(l2));
  return same;
}

Result<NetworkGraph> GraphWriter::Take(const GraphValue& output) {
  if (!output) {
    return InvalidArgument("the model reads no feature").Hint("select a column beside the label");
  }
  graph_->add_outputs(output.name);
  return std::move(*graph_);
}

}  // namespace sluice::models
