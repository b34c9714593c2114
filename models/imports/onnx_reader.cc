#include "models/imports/onnx_reader_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "models/imports/onnx.pb.h"
#include "models/imports/onnx_fields_internal.h"
#include "models/imports/onnx_rewrite_internal.h"
#include "models/imports/onnx_tensor_internal.h"

namespace sluice::models {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;
constexpr int64_t kFirstOperatorSet = 13;
// As in graph_run_internal.h; checked here before the nodes are created.
constexpr int kMaxNodes = 20'000;

constexpr std::array<std::string_view, 4> kControlFlow = {"If", "Loop", "Scan", "SequenceMap"};

bool OfOnnx(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

// "/hidden/Gemm, line 12": with the line of the source of a model that was compiled (see
// planner/compile), which stands in its documentation: "<model>(12): forward".
std::string NameWithLine(const onnx::Node& node) {
  constexpr std::string_view kFile = "<model>(";
  const size_t at = node.documentation().find(kFile);
  int line = 0;
  if (at != std::string::npos) {
    const char* const begin = node.documentation().data() + at + kFile.size();
    std::from_chars(begin, node.documentation().data() + node.documentation().size(), line);
  }
  return line > 0 ? fmt::format("{}, line {}", node.name(), line) : node.name();
}

std::string NameOf(const onnx::Node& node) {
  return node.name().empty() ? fmt::format("a node ({})", node.op_type())
                             : fmt::format("node '{}' ({})", NameWithLine(node), node.op_type());
}

// Whether the initializer configures an operator, and so is not trained.
bool Decides(const std::string& op, int input) {
  return (op == "Dropout" && input == 1) || (op == "Clip" && input > 0) ||
         (op == "Pad" && input == 2) || (op == "Pow" && input == 1);
}

class OnnxReader {
 public:
  OnnxReader(const onnx::Model& model, const std::vector<std::string>& frozen)
      : model_(model), file_(model.graph()), frozen_(frozen.begin(), frozen.end()) {}

  Result<ImportedNetwork> Read() {
    RETURN_IF_ERROR(CheckOperatorSets());
    RETURN_IF_ERROR(CheckNodes());
    RETURN_IF_ERROR(ReadInitializers());
    RETURN_IF_ERROR(ReadInputs());
    RETURN_IF_ERROR(ReadNodes());
    RETURN_IF_ERROR(CheckOrder());
    RETURN_IF_ERROR(CheckFrozen());
    if (file_.outputs_size() != 1) {
      return InvalidArgument(
                 fmt::format("the model has {} outputs: a network has one", file_.outputs_size()))
          .Hint("export it with the one that the loss is taken of");
    }
    read_.graph.add_outputs(file_.outputs(0).name());
    return std::move(read_);
  }

 private:
  Status CheckOperatorSets() const {
    for (const onnx::OperatorSet& set : model_.operator_sets()) {
      if (OfOnnx(set.domain()) && set.version() < kFirstOperatorSet) {
        return Unimplemented(fmt::format("the file is of ONNX's operator set {}: {} and later are "
                                         "read",
                                         set.version(), kFirstOperatorSet))
            .Hint("export it with opset_version=17");
      }
    }
    if (model_.operator_sets_size() == 0) {
      return InvalidArgument("the file does not say which operator set it is of");
    }
    return OkStatus();
  }

  Status CheckNodes() const {
    if (!file_.sparse_initializers().empty()) {
      return Unimplemented("sparse initializers are not supported")
          .Hint("export the model with dense ones");
    }
    if (file_.nodes_size() > kMaxNodes) {
      return InvalidArgument(
                 fmt::format("a graph of {} nodes: at most {}", file_.nodes_size(), kMaxNodes))
          .Hint("each is walked for every batch; a loop over rows or columns unrolls into nodes");
    }
    for (const onnx::Node& node : file_.nodes()) {
      if (!OfOnnx(node.domain())) {
        return Unimplemented(fmt::format("{}: operators of '{}' are not supported", NameOf(node),
                                         node.domain()))
            .Hint("only those of ONNX itself (domain ai.onnx) are");
      }
      if (std::find(kControlFlow.begin(), kControlFlow.end(), node.op_type()) !=
          kControlFlow.end()) {
        return Unimplemented(fmt::format("{}: control flow is not supported", NameOf(node)))
            .Hint("a network computes the same for every batch; Where chooses by row");
      }
    }
    return OkStatus();
  }

  Status ReadInitializers() {
    std::set<std::string> deciding;
    std::map<std::string, double> statistics;  // with their momentum
    for (const onnx::Node& node : file_.nodes()) {
      for (int k = 0; k < node.inputs_size(); ++k) {
        if (Decides(node.op_type(), k)) {
          deciding.insert(node.inputs(k));
        } else if (node.op_type() == "BatchNormalization" && k >= 3) {
          statistics.emplace(node.inputs(k), MomentumOf(node));
        }
      }
    }
    for (const onnx::Tensor& tensor : file_.initializers()) {
      if (!initializers_.insert(tensor.name()).second) {
        return InvalidArgument(fmt::format("two initializers are called '{}'", tensor.name()));
      }
      GraphTensor values;
      RETURN_IF_ERROR(ReadOnnxTensor(tensor, &values));
      if (values.type() != GraphTensor::NUMBER || deciding.contains(tensor.name())) {
        GraphNode* node = read_.graph.add_nodes();
        node->set_name(tensor.name());
        node->set_op_type("Constant");
        node->add_outputs(tensor.name());
        *node->mutable_constant() = std::move(values);
        continue;
      }
      if (std::any_of(values.numbers().begin(), values.numbers().end(),
                      [](float value) { return std::isnan(value); })) {
        return InvalidArgument(fmt::format("initializer '{}' begins with NaN", tensor.name()))
            .Hint("the model that was exported had diverged, or this value was never set");
      }
      GraphParameter* parameter = read_.graph.add_parameters();
      parameter->set_name(tensor.name());
      *parameter->mutable_shape() = values.shape();
      if (const auto found = statistics.find(tensor.name()); found != statistics.end()) {
        parameter->set_group(GraphParameter::STATISTICS);
        parameter->set_momentum(found->second);
      }
      if (frozen_.contains(tensor.name())) {
        parameter->set_group(GraphParameter::FROZEN);
      }
      read_.values.emplace(tensor.name(),
                           std::vector<float>(values.numbers().begin(), values.numbers().end()));
    }
    return OkStatus();
  }

  static double MomentumOf(const onnx::Node& node) {
    for (const onnx::Attribute& attribute : node.attributes()) {
      if (attribute.name() == "momentum") {
        return static_cast<double>(attribute.f());
      }
    }
    constexpr double kDefault = 0.9;
    return kDefault;
  }

  Status ReadInputs() {
    for (const onnx::Value& value : file_.inputs()) {
      if (initializers_.contains(value.name())) {
        continue;  // files of IR 3 list initializers as inputs
      }
      if (!value.has_type() || !value.type().has_tensor()) {
        return Unimplemented(fmt::format("input '{}' is no tensor", value.name()));
      }
      const onnx::Value::TensorType& type = value.type().tensor();
      ImportedInput input;
      input.name = value.name();
      switch (type.element_type()) {
        case onnx::Tensor::FLOAT:
        case onnx::Tensor::DOUBLE:
          break;
        case onnx::Tensor::INT32:
        case onnx::Tensor::INT64:
          input.ids = true;
          break;
        default:
          return Unimplemented(fmt::format("input '{}' is of {}", value.name(),
                                           OnnxTypeName(type.element_type())))
              .Hint("floats are numbers of a feature, int64 its ids");
      }
      if (!type.has_shape() || type.shape().dims_size() == 0) {
        return InvalidArgument(fmt::format("input '{}' has no rows", value.name()))
            .Hint("the first axis of each input is the rows of the batch");
      }
      for (int k = 1; k < type.shape().dims_size(); ++k) {
        const onnx::Value::Dimension& dimension = type.shape().dims(k);
        if (dimension.value() < 0) {
          return InvalidArgument(
              fmt::format("input '{}' has an axis of {}", value.name(), dimension.value()));
        }
        input.extents.push_back(
            dimension.extent_case() == onnx::Value::Dimension::kValue ? dimension.value() : -1);
      }
      // A fixed number of rows would allow only one batch size; exporters often write one by
      // accident.
      const onnx::Value::Dimension& rows = type.shape().dims(0);
      if (rows.extent_case() == onnx::Value::Dimension::kValue && rows.value() > 1) {
        read_.notes.push_back(
            fmt::format("input '{}' is of {} rows in the file: batches have as many as they have",
                        value.name(), rows.value()));
      }
      read_.inputs.push_back(std::move(input));
    }
    return OkStatus();
  }

  Status ReadNodes() {
    for (const onnx::Node& node : file_.nodes()) {
      GraphNode own;
      own.set_name(NameWithLine(node));
      own.set_op_type(node.op_type());
      own.mutable_inputs()->Add(node.inputs().begin(), node.inputs().end());
      own.mutable_outputs()->Add(node.outputs().begin(), node.outputs().end());
      for (const onnx::Attribute& attribute : node.attributes()) {
        RETURN_IF_ERROR(ReadAttribute(attribute, &own).Because(NameOf(node)));
      }
      RETURN_IF_ERROR(RewriteOperator(std::move(own), &read_.graph).Because(NameOf(node)));
    }
    return OkStatus();
  }

  static Status ReadAttribute(const onnx::Attribute& from, GraphNode* node) {
    const bool constant = node->op_type() == "Constant";
    if (from.type() == onnx::Attribute::TENSOR) {
      return ReadOnnxTensor(from.t(), node->mutable_constant());
    }
    GraphAttribute read;
    read.set_name(from.name());
    switch (from.type()) {
      case onnx::Attribute::FLOAT:
        read.add_numbers(from.f());
        break;
      case onnx::Attribute::INT:
        read.add_integers(from.i());
        break;
      case onnx::Attribute::STRING:
        read.add_texts(from.s());
        break;
      case onnx::Attribute::FLOATS:
        *read.mutable_numbers() = from.floats();
        break;
      case onnx::Attribute::INTS:
        *read.mutable_integers() = from.ints();
        break;
      case onnx::Attribute::STRINGS:
        read.mutable_texts()->Add(from.strings().begin(), from.strings().end());
        break;
      default:
        return Unimplemented(
            fmt::format("attribute '{}' is of a type that is not supported", from.name()));
    }
    if (!constant) {
      *node->add_attributes() = std::move(read);
      return OkStatus();
    }
    // value_float, value_ints and the like.
    GraphTensor* tensor = node->mutable_constant();
    const bool list =
        from.type() == onnx::Attribute::FLOATS || from.type() == onnx::Attribute::INTS;
    if (read.texts_size() > 0) {
      return Unimplemented("constants of text are not supported");
    }
    if (list) {
      tensor->add_shape(read.numbers_size() + read.integers_size());
    }
    const bool integers =
        from.type() == onnx::Attribute::INT || from.type() == onnx::Attribute::INTS;
    tensor->set_type(integers ? GraphTensor::INTEGER : GraphTensor::NUMBER);
    tensor->mutable_numbers()->Swap(read.mutable_numbers());
    tensor->mutable_integers()->Swap(read.mutable_integers());
    return OkStatus();
  }

  // Checked here because the error of GraphRun would say less about a cycle.
  Status CheckOrder() const {
    std::map<std::string, int> makers;
    for (int n = 0; n < read_.graph.nodes_size(); ++n) {
      for (const std::string& output : read_.graph.nodes(n).outputs()) {
        makers.emplace(output, n);
      }
    }
    for (int n = 0; n < read_.graph.nodes_size(); ++n) {
      const GraphNode& node = read_.graph.nodes(n);
      for (const std::string& input : node.inputs()) {
        const auto maker = makers.find(input);
        if (maker != makers.end() && maker->second >= n && !initializers_.contains(input)) {
          const std::string own =
              node.name().empty() ? "a node" : fmt::format("node '{}'", node.name());
          return InvalidArgument(fmt::format(
              "{} ({}) reads '{}', which is made by it or by a node behind it: the graph has "
              "a cycle, or is out of order",
              own, node.op_type(), input));
        }
      }
    }
    return OkStatus();
  }

  Status CheckFrozen() const {
    std::vector<std::string> names;
    for (const GraphParameter& parameter : read_.graph.parameters()) {
      names.push_back(parameter.name());
    }
    for (const std::string& name : frozen_) {
      if (read_.values.contains(name)) {
        continue;
      }
      Status unknown =
          InvalidArgument(fmt::format("model.frozen names '{}', which is no parameter", name));
      if (const auto near = NearestName(name, names)) {
        return std::move(unknown).Hint(fmt::format("did you mean '{}'?", *near));
      }
      return unknown;
    }
    return OkStatus();
  }

  const onnx::Model& model_;
  const onnx::Graph& file_;
  const std::set<std::string> frozen_;
  std::set<std::string> initializers_;
  ImportedNetwork read_;
};

}  // namespace

Result<ImportedNetwork> ReadOnnx(std::string_view file, const std::vector<std::string>& frozen) {
  if (file.size() > kMaxFileBytes) {
    return InvalidArgument(
        fmt::format("an ONNX file of {} bytes: at most {}", file.size(), kMaxFileBytes));
  }
  RETURN_IF_ERROR(CheckOnnxFields(file));
  onnx::Model model;
  if (!model.ParseFromArray(file.data(), static_cast<int>(file.size()))) {
    return InvalidArgument("this is no ONNX file, or it is cut off or damaged");
  }
  if (!model.has_graph()) {
    return InvalidArgument("this is no ONNX file: it has no graph");
  }
  return OnnxReader(model, frozen).Read();
}

}  // namespace sluice::models
