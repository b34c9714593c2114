#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/imports/keras_network_internal.h"
#include "models/imports/onnx_rewrite_internal.h"

namespace sluice::models::keras {
namespace {

struct FunctionName {
  std::string_view keras, onnx;
};
constexpr std::array<FunctionName, 11> kFunctions = {{{"relu", "Relu"},
                                                      {"sigmoid", "Sigmoid"},
                                                      {"tanh", "Tanh"},
                                                      {"elu", "Elu"},
                                                      {"selu", "Selu"},
                                                      {"softplus", "Softplus"},
                                                      {"softsign", "Softsign"},
                                                      {"hard_sigmoid", "HardSigmoid"},
                                                      {"softmax", "Softmax"},
                                                      {"exponential", "Exp"},
                                                      {"leaky_relu", "LeakyRelu"}}};

std::string ClassOf(const Json& object) {
  return object.IsString() ? std::string(object.GetString()) : Text(object, "class_name");
}

std::string Limit(const char* kind, double value) {
  return fmt::format("{}:{}", kind, value);
}

Result<std::string> Scaled(const Json& config, const Weight& weight) {
  const double scale = Number(config, "scale", 1);
  const std::string mode = Text(config, "mode", "fan_in");
  const double fan = mode == "fan_out"   ? weight.fan_out
                     : mode == "fan_avg" ? (weight.fan_in + weight.fan_out) / 2
                                         : weight.fan_in;
  const double variance = scale / std::max(fan, 1.0);
  if (!(variance >= 0 && variance < 1e6)) {
    return InvalidArgument(fmt::format("{}: a scale of {}", weight.name, scale));
  }
  const bool uniform = Text(config, "distribution", "truncated_normal") == "uniform";
  return uniform ? Limit("uniform", std::sqrt(3 * variance)) : Limit("normal", std::sqrt(variance));
}

}  // namespace

std::string FunctionOf(const std::string& keras) {
  for (const FunctionName& function : kFunctions) {
    if (function.keras == keras) {
      return std::string(function.onnx);
    }
  }
  return "";
}

Result<std::string> InitializerOf(const Json& initializer, const std::string& otherwise,
                                  const Weight& weight, std::string* note) {
  const std::string name = initializer.IsNull() ? otherwise : ClassOf(initializer);
  const Json& config = Member(initializer, "config");
  const double both = std::max(weight.fan_in + weight.fan_out, 1.0);
  const double in = std::max(weight.fan_in, 1.0);
  if (name == "Zeros" || name == "zeros" || name == "Ones" || name == "ones") {
    return std::string(name == "Zeros" || name == "zeros" ? "zeros" : "ones");
  }
  if (name == "GlorotUniform" || name == "glorot_uniform") {
    return Limit("uniform", std::sqrt(6 / both));
  }
  if (name == "GlorotNormal" || name == "glorot_normal") {
    return Limit("normal", std::sqrt(2 / both));
  }
  if (name == "HeUniform" || name == "he_uniform") {
    return Limit("uniform", std::sqrt(6 / in));
  }
  if (name == "HeNormal" || name == "he_normal") {
    return Limit("normal", std::sqrt(2 / in));
  }
  if (name == "LecunUniform" || name == "lecun_uniform") {
    return Limit("uniform", std::sqrt(3 / in));
  }
  if (name == "LecunNormal" || name == "lecun_normal") {
    return Limit("normal", std::sqrt(1 / in));
  }
  if (name == "VarianceScaling") {
    return Scaled(config, weight);
  }
  if (name == "Orthogonal" || name == "OrthogonalInitializer" || name == "orthogonal") {
    *note = "begins as normal numbers of an orthogonal matrix's size, and not as one";
    return Limit("normal", std::sqrt(1 / in));
  }
  const double mean = Number(config, "mean", 0);
  const double width = Number(config, "stddev", 0.05);
  const bool normal = name == "RandomNormal" || name == "TruncatedNormal" ||
                      name == "random_normal" || name == "truncated_normal";
  if (normal && mean == 0 && width >= 0 && width < 1e6) {
    return Limit("normal", width);
  }
  const double least = Number(config, "minval", -0.05);
  const double most = Number(config, "maxval", 0.05);
  if ((name == "RandomUniform" || name == "random_uniform" || name == "uniform") &&
      least == -most && most >= 0 && most < 1e6) {
    return Limit("uniform", most);
  }
  return Unimplemented(fmt::format("{}: the initialiser {} is not supported", weight.name, name))
      .Hint(
          "Zeros, Ones, those of Glorot, He and Lecun, VarianceScaling, and random ones around 0 "
          "are");
}

LayerWriter::LayerWriter(const Json& layer, std::string name, size_t call, ImportedNetwork* network,
                         bool trainable)
    : network_(*network),
      config_(&Member(layer, "config")),
      name_(std::move(name)),
      type_(Text(layer, "class_name")),
      call_(call),
      trainable_(trainable && Flag(*config_, "trainable", true)),
      keras3_(Has(layer, "module")) {}

std::string LayerWriter::Own(const std::string& part) const {
  std::string own = part.empty() ? name_ : name_ + "/" + part;
  return call_ == 0 ? own : fmt::format("{}:{}", own, call_);
}

std::string LayerWriter::Node(const std::string& op, const std::vector<std::string>& inputs,
                              const std::string& part) {
  return AddNode(op, inputs, Own(part), &network_.graph);
}

void LayerWriter::Set(const char* attribute, const std::vector<int64_t>& integers) {
  GraphAttribute* own =
      network_.graph.mutable_nodes(network_.graph.nodes_size() - 1)->add_attributes();
  own->set_name(attribute);
  own->mutable_integers()->Add(integers.begin(), integers.end());
}

void LayerWriter::SetNumber(const char* attribute, float number) {
  GraphAttribute* own =
      network_.graph.mutable_nodes(network_.graph.nodes_size() - 1)->add_attributes();
  own->set_name(attribute);
  own->add_numbers(number);
}

void LayerWriter::SetTexts(const char* attribute, const std::vector<std::string>& texts) {
  GraphAttribute* own =
      network_.graph.mutable_nodes(network_.graph.nodes_size() - 1)->add_attributes();
  own->set_name(attribute);
  for (const std::string& text : texts) {
    own->add_texts(text);
  }
}

void LayerWriter::SetOutputs(const std::vector<std::string>& parts) {
  GraphNode* node = network_.graph.mutable_nodes(network_.graph.nodes_size() - 1);
  node->clear_outputs();
  for (const std::string& part : parts) {
    node->add_outputs(part.empty() ? "" : Own(part));
  }
}

std::string LayerWriter::Integers(const std::vector<int64_t>& values, const std::string& part) {
  return AddIntegers(values, Own(part), &network_.graph);
}

std::string LayerWriter::Scalar(float value, const std::string& part) {
  return AddNumber(value, Own(part), &network_.graph);
}

std::string LayerWriter::Zeros(const std::vector<int64_t>& shape, const std::string& part) {
  return Node("ConstantOfShape", {Integers(shape, part + "/shape")}, part);
}

std::string LayerWriter::Reshape(const std::string& value, std::vector<int64_t> extents,
                                 const std::string& part) {
  extents.insert(extents.begin(), -1);
  return Node("Reshape", {value, Integers(extents, part + "/shape")}, part);
}

std::string LayerWriter::Permute(const std::string& value, const std::vector<int64_t>& axes,
                                 const std::string& part) {
  std::string permuted = Node("Transpose", {value}, part);
  Set("perm", axes);
  return permuted;
}

GraphParameter* LayerWriter::Declare(const std::string& part, const std::vector<int64_t>& shape) {
  GraphParameter* parameter = network_.graph.add_parameters();
  parameter->set_name(name_ + "/" + part);
  parameter->mutable_shape()->Add(shape.begin(), shape.end());
  if (!trainable_) {
    parameter->set_group(GraphParameter::FROZEN);
  }
  return parameter;
}

Result<std::string> LayerWriter::Parameter(const Weight& weight) {
  const std::string own = name_ + "/" + weight.name;
  if (call_ == 0) {
    std::string note;
    ASSIGN_OR_RETURN(
        const std::string initializer,
        InitializerOf(Member(*config_, weight.initializer), weight.otherwise, weight, &note));
    Declare(weight.name, weight.shape)->set_initializer(initializer);
    if (!note.empty()) {
      network_.notes.push_back(fmt::format("{} {}", own, note));
    }
  }
  return Penalised(weight, own);
}

Result<std::string> LayerWriter::Penalised(const Weight& weight, const std::string& parameter) {
  if (*weight.regularizer == '\0' || !Has(*config_, weight.regularizer) || !trainable_) {
    return parameter;
  }
  if (call_ > 0) {  // once for all calls
    return name_ + "/" + weight.name + "/penalised";
  }
  const Json& regularizer = Member(*config_, weight.regularizer);
  const std::string kind = ClassOf(regularizer);
  const Json& config = Member(regularizer, "config");
  if (kind != "L1" && kind != "L2" && kind != "L1L2" && kind != "l1" && kind != "l2" &&
      kind != "l1_l2") {
    return Unsupported(fmt::format("the regulariser {}", kind));
  }
  constexpr double kDefault = 0.01;
  const double l1 = Number(config, "l1", kind == "L1" || kind == "l1" ? kDefault : 0);
  const double l2 = Number(config, "l2", kind == "L2" || kind == "l2" ? kDefault : 0);
  if (!(l1 >= 0 && l2 >= 0)) {
    return InvalidArgument(fmt::format("layer '{}': a penalty of {} and {}", name_, l1, l2));
  }
  if (l1 == 0 && l2 == 0) {
    return parameter;
  }
  std::string penalised =
      Node("WeightPenalty", {parameter}, std::string(weight.name) + "/penalised");
  SetNumber("l1", static_cast<float>(l1));
  SetNumber("l2", static_cast<float>(l2));
  return penalised;
}

std::string LayerWriter::ParameterOf(const std::string& part, const std::vector<int64_t>& shape,
                                     std::vector<float> values) {
  std::string own = name_ + "/" + part;
  if (call_ == 0) {
    Declare(part, shape);
    network_.values.emplace(own, std::move(values));
  }
  return own;
}

void LayerWriter::Statistics(const std::string& part, int64_t width, const char* initializer,
                             double momentum) {
  if (call_ > 0) {
    return;
  }
  GraphParameter* parameter = Declare(part, {width});
  if (trainable_) {
    parameter->set_group(GraphParameter::STATISTICS);
  }
  parameter->set_initializer(initializer);
  parameter->set_momentum(momentum);
}

Result<std::string> LayerWriter::Activate(const std::string& value, const Json& function,
                                          const std::string& part) {
  const std::string keras = ClassOf(function);
  if (function.IsNull() || keras == "linear") {
    return value;
  }
  if (keras == "gelu") {
    return Node("Gelu", {value}, part);
  }
  if (keras == "swish" || keras == "silu") {
    return Node("Mul", {value, Node("Sigmoid", {value}, part + "/gate")}, part);
  }
  if (keras == "relu6") {
    return Node("Clip", {value, Scalar(0, part + "/least"), Scalar(6, part + "/most")}, part);
  }
  const std::string onnx = FunctionOf(keras);
  if (onnx.empty()) {
    return Unsupported(fmt::format("the activation '{}'", keras));
  }
  std::string activated = Node(onnx, {value}, part);
  if (onnx == "LeakyRelu") {
    constexpr float kSlope = 0.2F;
    SetNumber("alpha", kSlope);
  }
  if (onnx == "HardSigmoid" && keras3_) {  // x / 6 + 0.5; of Keras 2, as of ONNX, x / 5 + 0.5
    constexpr float kSlope = 1.0F / 6;
    SetNumber("alpha", kSlope);
  }
  return activated;
}

Status LayerWriter::Refuse(const std::vector<const char*>& members) const {
  for (const char* member : members) {
    const Json& value = Member(*config_, member);
    const bool nothing =
        value.IsNull() || value.IsFalse() || (value.IsNumber() && value.GetDouble() == 0);
    if (!nothing) {
      return Unsupported(member);
    }
  }
  return OkStatus();
}

Status LayerWriter::Unsupported(const std::string& what) const {
  return Unimplemented(fmt::format("layer '{}' ({}): {} is not supported", name_, type_, what))
      .Hint("export the model to ONNX, which says it in operators");
}

}  // namespace sluice::models::keras
