#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "models/imports/keras_network_internal.h"

// Layers of single rows.
namespace sluice::models::keras {
namespace {

constexpr int64_t kWidest = 1 << 18;
constexpr int64_t kMaxRows = int64_t{1} << 40;

int64_t Product(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  constexpr int64_t kMax = int64_t{1} << 31;
  for (const int64_t extent : extents) {
    product = std::min(product * std::max<int64_t>(extent, 0), kMax);
  }
  return product;
}

Result<Value> Dense(LayerWriter& layer, const Value& x) {
  RETURN_IF_ERROR(layer.Refuse({"activity_regularizer", "kernel_constraint", "bias_constraint",
                                "lora_rank", "quantization_config"}));
  ASSIGN_OR_RETURN(const int64_t units, Whole(layer.config(), "units", 1, kWidest));
  if (x.extents.empty()) {
    return layer.Unsupported("an input of one number per row without an axis");
  }
  const int64_t width = x.extents.back();
  const auto fan_in = static_cast<double>(width);
  const auto fan_out = static_cast<double>(units);
  ASSIGN_OR_RETURN(const std::string kernel, layer.Parameter({"kernel",
                                                              {width, units},
                                                              fan_in,
                                                              fan_out,
                                                              "kernel_initializer",
                                                              "GlorotUniform",
                                                              "kernel_regularizer"}));
  std::string y;
  const bool flat = x.extents.size() == 1;
  if (Flag(layer.config(), "use_bias", true)) {
    ASSIGN_OR_RETURN(
        const std::string bias,
        layer.Parameter(
            {"bias", {units}, fan_in, fan_out, "bias_initializer", "Zeros", "bias_regularizer"}));
    y = flat
            ? layer.Node("Gemm", {x.name, kernel, bias}, "dense")
            : layer.Node("Add", {layer.Node("MatMul", {x.name, kernel}, "product"), bias}, "dense");
  } else {
    y = layer.Node("MatMul", {x.name, kernel}, "dense");
  }
  std::vector<int64_t> extents = x.extents;
  extents.back() = units;
  ASSIGN_OR_RETURN(y, layer.Activate(y, Member(layer.config(), "activation"), "activation"));
  return Value{y, extents};
}

Result<Value> Embedding(LayerWriter& layer, const Value& x) {
  RETURN_IF_ERROR(layer.Refuse({"mask_zero", "embeddings_regularizer", "activity_regularizer",
                                "embeddings_constraint", "lora_rank", "quantization_config"}));
  ASSIGN_OR_RETURN(const int64_t rows, Whole(layer.config(), "input_dim", 1, kMaxRows));
  ASSIGN_OR_RETURN(const int64_t width, Whole(layer.config(), "output_dim", 1, kWidest));
  ASSIGN_OR_RETURN(const std::string table, layer.Parameter({"embeddings",
                                                             {rows, width},
                                                             static_cast<double>(rows),
                                                             static_cast<double>(width),
                                                             "embeddings_initializer",
                                                             "RandomUniform",
                                                             ""}));
  std::vector<int64_t> extents = x.extents;
  extents.push_back(width);
  const std::string y = layer.Node("Gather", {table, x.name}, "rows");
  layer.SetOne("axis", 0);
  return Value{y, extents};
}

Result<Value> Reshaped(LayerWriter& layer, const Value& x) {
  if (layer.type() == "Flatten" && x.extents.size() > 1 &&
      Text(layer.config(), "data_format", "channels_last") != "channels_last") {
    return layer.Unsupported("channels_first");
  }
  std::vector<int64_t> extents = {Product(x.extents)};
  if (layer.type() == "Reshape") {
    const auto target = Extents(Member(layer.config(), "target_shape"));
    if (!target || std::count(target->begin(), target->end(), -1) > 1) {
      return layer.Unsupported("its target_shape");
    }
    extents = *target;
    const auto open = std::find(extents.begin(), extents.end(), -1);
    if (open != extents.end()) {
      *open = 1;
      const int64_t others = Product(extents);
      *open = others > 0 ? Product(x.extents) / others : 0;
    }
    if (Product(extents) != Product(x.extents)) {
      return InvalidArgument(fmt::format("layer '{}' (Reshape): {} numbers into {}", layer.name(),
                                         Product(x.extents), Product(extents)));
    }
  }
  return Value{layer.Reshape(x.name, extents, "reshaped"), extents};
}

Result<Value> Concatenated(LayerWriter& layer, const std::vector<Value>& inputs) {
  Value joined = inputs[0];
  const auto axes = static_cast<int64_t>(joined.extents.size()) + 1;
  ASSIGN_OR_RETURN(int64_t axis, Whole(layer.config(), "axis", -axes, axes - 1, -1));
  axis += axis < 0 ? axes : 0;
  if (axis < 1) {
    return layer.Unsupported("rows one behind the other");
  }
  std::vector<std::string> names = {joined.name};
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].extents.size() != joined.extents.size()) {
      return InvalidArgument(fmt::format("layer '{}' (Concatenate): inputs of {} and of {} axes",
                                         layer.name(), axes, inputs[i].extents.size() + 1));
    }
    names.push_back(inputs[i].name);
    joined.extents[static_cast<size_t>(axis) - 1] +=
        inputs[i].extents[static_cast<size_t>(axis) - 1];
  }
  joined.name = layer.Node("Concat", names, "joined");
  layer.SetOne("axis", axis);
  return joined;
}

Result<Value> Merged(LayerWriter& layer, const std::vector<Value>& inputs, const char* op) {
  Value merged = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].extents.size() != merged.extents.size()) {
      return InvalidArgument(fmt::format("layer '{}' ({}): inputs of different numbers of axes",
                                         layer.name(), layer.type()));
    }
    for (size_t k = 0; k < merged.extents.size(); ++k) {
      merged.extents[k] = std::max(merged.extents[k], inputs[i].extents[k]);
    }
    merged.name = layer.Node(op, {merged.name, inputs[i].name}, fmt::format("merged{}", i));
  }
  if (layer.type() == "Average") {
    const std::string count = layer.Scalar(static_cast<float>(inputs.size()), "count");
    merged.name = layer.Node("Div", {merged.name, count}, "average");
  }
  return merged;
}

Result<Value> Dot(LayerWriter& layer, const std::vector<Value>& inputs) {
  const Json& axes = Member(layer.config(), "axes");
  const auto along = [](const Json& axis) {
    return axis.IsInt() && (axis.GetInt() == 1 || axis.GetInt() == -1);
  };
  const bool rows =
      axes.IsArray() ? axes.Size() == 2 && along(axes[0]) && along(axes[1]) : along(axes);
  if (inputs.size() != 2 || inputs[0].extents.size() != 1 || inputs[1].extents.size() != 1 ||
      !rows) {
    return layer.Unsupported("a product of other than two rows of numbers");
  }
  std::vector<std::string> names = {inputs[0].name, inputs[1].name};
  if (Flag(layer.config(), "normalize", false)) {
    for (size_t i = 0; i < names.size(); ++i) {
      const std::string part = fmt::format("side{}", i);
      const std::string length = layer.Node("ReduceL2", {names[i]}, part + "/length");
      layer.Set("axes", {1});
      layer.SetOne("keepdims", 1);
      constexpr float kLeast = 1e-6F;
      const std::string least = layer.Scalar(kLeast, part + "/least");
      names[i] = layer.Node(
          "Div", {names[i], layer.Node("Max", {length, least}, part + "/divisor")}, part);
    }
  }
  const std::string product = layer.Node("Mul", names, "product");
  const std::string sum = layer.Node("ReduceSum", {product, layer.Integers({1}, "axes")}, "sum");
  layer.SetOne("keepdims", 1);
  return Value{sum, {1}};
}

Result<Value> Rectified(LayerWriter& layer, const Value& x) {
  RETURN_IF_ERROR(layer.Refuse({"threshold"}));
  const bool leaky = layer.type() == "LeakyReLU";
  constexpr double kLeakySlope = 0.3;
  double slope = Number(layer.config(), "negative_slope", leaky ? kLeakySlope : 0);
  slope = Number(layer.config(), "alpha", slope);
  Value y = x;
  if (slope == 0) {
    y.name = layer.Node("Relu", {x.name}, "relu");
  } else {
    y.name = layer.Node("LeakyRelu", {x.name}, "relu");
    layer.SetNumber("alpha", static_cast<float>(slope));
  }
  if (Has(layer.config(), "max_value")) {
    const auto most = static_cast<float>(Number(layer.config(), "max_value", 0));
    const std::string greatest = layer.Scalar(most, "most");
    y.name = layer.Node("Min", {y.name, greatest}, "clipped");
  }
  return y;
}

// Keras normalizes over the last axis; in ONNX channels are the second.
Result<Value> BatchNormalised(LayerWriter& layer, const Value& x) {
  const auto axes = static_cast<int64_t>(x.extents.size()) + 1;
  const Json& written = Member(layer.config(), "axis");
  const int64_t axis = written.IsInt() ? written.GetInt()
                       : written.IsArray() && written.Size() == 1 && written[0].IsInt()
                           ? written[0].GetInt()
                           : -1;
  if (axes < 2 || axes > 3 || (axis != -1 && axis != axes - 1)) {
    return layer.Unsupported("another axis than the last");
  }
  RETURN_IF_ERROR(layer.Refuse({"beta_regularizer", "gamma_regularizer", "beta_constraint",
                                "gamma_constraint", "renorm", "synchronized"}));
  const int64_t width = x.extents.back();
  const auto parameter = [&](const char* name, const char* initializer, const char* otherwise,
                             const char* used) -> Result<std::string> {
    if (!Flag(layer.config(), used, true)) {
      const std::vector<float> values(static_cast<size_t>(width),
                                      std::string_view(otherwise) == "Ones" ? 1.0F : 0.0F);
      const std::string zeros = layer.Zeros({width}, name);
      return values.front() == 0
                 ? zeros
                 : layer.Node("Add", {zeros, layer.Scalar(1, "one")}, std::string(name) + "/ones");
    }
    return layer.Parameter({name, {width}, 1, 1, initializer, otherwise, ""});
  };
  ASSIGN_OR_RETURN(const std::string gamma,
                   parameter("gamma", "gamma_initializer", "Ones", "scale"));
  ASSIGN_OR_RETURN(const std::string beta,
                   parameter("beta", "beta_initializer", "Zeros", "center"));
  const double momentum = Number(layer.config(), "momentum", 0.99);
  const double epsilon = Number(layer.config(), "epsilon", 1e-3);
  const bool learns = layer.trainable();
  const std::string mean = layer.name() + "/moving_mean";
  const std::string variance = layer.name() + "/moving_variance";
  layer.Statistics("moving_mean", width, "zeros", momentum);
  layer.Statistics("moving_variance", width, "ones", momentum);
  if (!learns) {  // in training as in prediction
    const std::string spread = layer.Node(
        "Sqrt",
        {layer.Node("Add", {variance, layer.Scalar(static_cast<float>(epsilon), "epsilon")},
                    "spread/square")},
        "spread");
    const std::string standard =
        layer.Node("Div", {layer.Node("Sub", {x.name, mean}, "centred"), spread}, "standard");
    return Value{
        layer.Node("Add", {layer.Node("Mul", {standard, gamma}, "scaled"), beta}, "normal"),
        x.extents};
  }
  const bool sequence = axes == 3;
  const std::string channels = sequence ? layer.Permute(x.name, {0, 2, 1}, "channels") : x.name;
  std::string y =
      layer.Node("BatchNormalization", {channels, gamma, beta, mean, variance}, "normal");
  layer.SetNumber("epsilon", static_cast<float>(epsilon));
  layer.SetNumber("momentum", static_cast<float>(momentum));
  if (sequence) {
    y = layer.Permute(y, {0, 2, 1}, "steps");
  }
  return Value{y, x.extents};
}

Result<Value> LayerNormalised(LayerWriter& layer, const Value& x) {
  const auto axes = static_cast<int64_t>(x.extents.size()) + 1;
  const Json& written = Member(layer.config(), "axis");
  const Json& one = written.IsArray() && written.Size() == 1 ? written[0] : written;
  const int64_t axis = one.IsInt() ? one.GetInt() : -1;
  if (axes < 2 || (axis != -1 && axis != axes - 1) || (written.IsArray() && written.Size() != 1)) {
    return layer.Unsupported("another axis than the last");
  }
  if (!Flag(layer.config(), "scale", true) || !Flag(layer.config(), "center", true)) {
    return layer.Unsupported("without scale or center");
  }
  const int64_t width = x.extents.back();
  ASSIGN_OR_RETURN(const std::string gamma,
                   layer.Parameter({"gamma", {width}, 1, 1, "gamma_initializer", "Ones", ""}));
  ASSIGN_OR_RETURN(const std::string beta,
                   layer.Parameter({"beta", {width}, 1, 1, "beta_initializer", "Zeros", ""}));
  const std::string y = layer.Node("LayerNormalization", {x.name, gamma, beta}, "normal");
  layer.SetOne("axis", -1);
  layer.SetNumber("epsilon", static_cast<float>(Number(layer.config(), "epsilon", 1e-3)));
  return Value{y, x.extents};
}

}  // namespace

bool JoinsInputs(std::string_view type) {
  constexpr std::array<std::string_view, 8> kJoining = {
      "Concatenate", "Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Dot"};
  return std::find(kJoining.begin(), kJoining.end(), type) != kJoining.end();
}

Result<Value> WriteLayer(LayerWriter& layer, const std::vector<Value>& inputs, bool* found) {
  *found = true;
  const std::string& type = layer.type();
  const Value& x = inputs.front();
  if (type == "Dense") {
    return Dense(layer, x);
  }
  if (type == "Embedding") {
    return Embedding(layer, x);
  }
  if (type == "Flatten" || type == "Reshape") {
    return Reshaped(layer, x);
  }
  if (type == "Concatenate") {
    return Concatenated(layer, inputs);
  }
  for (const auto& [merge, op] :
       {std::pair("Add", "Add"), std::pair("Subtract", "Sub"), std::pair("Multiply", "Mul"),
        std::pair("Average", "Add"), std::pair("Maximum", "Max"), std::pair("Minimum", "Min")}) {
    if (type == merge) {
      return Merged(layer, inputs, op);
    }
  }
  if (type == "Dot") {
    return Dot(layer, inputs);
  }
  if (type == "Dropout") {
    const double rate = Number(layer.config(), "rate", 0);
    if (!(rate >= 0 && rate < 1)) {
      return InvalidArgument(fmt::format("layer '{}' (Dropout): a rate of {}", layer.name(), rate));
    }
    RETURN_IF_ERROR(layer.Refuse({"noise_shape"}));
    const std::string ratio = layer.Scalar(static_cast<float>(rate), "rate");
    return Value{layer.Node("Dropout", {x.name, ratio}, "dropped"), x.extents};
  }
  if (type == "Activation") {
    ASSIGN_OR_RETURN(const std::string y,
                     layer.Activate(x.name, Member(layer.config(), "activation"), "activation"));
    return Value{y, x.extents};
  }
  if (type == "ReLU" || type == "LeakyReLU") {
    return Rectified(layer, x);
  }
  if (type == "ELU") {
    const std::string y = layer.Node("Elu", {x.name}, "elu");
    layer.SetNumber("alpha", static_cast<float>(Number(layer.config(), "alpha", 1)));
    return Value{y, x.extents};
  }
  if (type == "Softmax") {
    const auto axes = static_cast<int64_t>(x.extents.size()) + 1;
    ASSIGN_OR_RETURN(const int64_t axis, Whole(layer.config(), "axis", -axes, axes - 1, -1));
    const std::string y = layer.Node("Softmax", {x.name}, "softmax");
    layer.SetOne("axis", axis);
    return Value{y, x.extents};
  }
  if (type == "BatchNormalization") {
    return BatchNormalised(layer, x);
  }
  if (type == "LayerNormalization") {
    return LayerNormalised(layer, x);
  }
  *found = false;
  return x;
}

}  // namespace sluice::models::keras
