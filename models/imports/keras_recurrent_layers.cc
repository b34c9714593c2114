#include <fmt/core.h>

#include <algorithm>

#include "models/imports/keras_network_internal.h"

// LSTM, GRU and SimpleRNN, and Bidirectional around one of them. Weights have ONNX's order and
// shape: their initial values are random anyway.
namespace sluice::models::keras {
namespace {

constexpr int64_t kMaxUnits = 1 << 16;

struct Cell {
  const char* op = "";
  int64_t gates = 1;
  std::vector<std::string> activations;  // for one direction
  bool two_biases = false;               // GRU with reset_after: one for the state, too
};

Result<Cell> CellOf(const LayerWriter& layer, const std::string& type, const Json& config) {
  const auto function = [&](const char* name, const char* otherwise) -> Result<std::string> {
    const std::string keras =
        Member(config, name).IsObject() ? "of another class" : Text(config, name, otherwise);
    std::string onnx = FunctionOf(keras);
    const bool other_slope = onnx == "HardSigmoid" && layer.keras3();
    if (onnx.empty() || onnx == "Softmax" || onnx == "Exp" || onnx == "LeakyRelu" || other_slope) {
      return layer.Unsupported(fmt::format("the {} '{}'", name, keras));
    }
    return onnx;
  };
  Cell cell;
  ASSIGN_OR_RETURN(const std::string activation, function("activation", "tanh"));
  if (type == "SimpleRNN") {
    cell.op = "RNN";
    cell.activations = {activation};
    return cell;
  }
  ASSIGN_OR_RETURN(const std::string gate, function("recurrent_activation", "sigmoid"));
  if (type == "GRU") {
    cell.op = "GRU";
    cell.gates = 3;
    cell.activations = {gate, activation};
    cell.two_biases = Flag(config, "reset_after", true);
    return cell;
  }
  cell.op = "LSTM";
  cell.gates = 4;
  cell.activations = {gate, activation, activation};
  return cell;
}

bool IsCell(const std::string& type) {
  return type == "LSTM" || type == "GRU" || type == "SimpleRNN";
}

// [directions, 2 x gates x units]: the second half is zero if Keras has no such bias.
Result<std::string> BiasOf(LayerWriter& layer, const Cell& cell, const Json& config,
                           int64_t directions, int64_t units) {
  const int64_t width = cell.gates * units;
  const int64_t own = cell.two_biases ? 2 * width : width;
  std::vector<float> values(static_cast<size_t>(directions * own), 0.0F);
  const bool forget = std::string_view(cell.op) == "LSTM" && Flag(config, "unit_forget_bias", true);
  for (int64_t d = 0; forget && d < directions; ++d) {  // ONNX's gates: input, output, forget, cell
    std::fill_n(values.begin() + d * own + 2 * units, units, 1.0F);
  }
  const std::string bias = layer.ParameterOf("bias", {directions, own}, std::move(values));
  if (cell.two_biases) {
    return bias;
  }
  const std::string zeros = layer.Zeros({directions, width}, "no_bias");
  std::string both = layer.Node("Concat", {bias, zeros}, "biases");
  layer.SetOne("axis", 1);
  return both;
}

Result<Value> Recurrent(LayerWriter& layer, const std::string& type, const Json& config,
                        bool both_ways, const Value& x) {
  if (x.extents.size() != 2 || x.extents[0] < 1) {
    return layer.Unsupported("an input of other than [rows, steps, channels]");
  }
  for (const char* member :
       {"dropout", "recurrent_dropout", "stateful", "return_state", "kernel_regularizer",
        "recurrent_regularizer", "bias_regularizer", "activity_regularizer", "kernel_constraint",
        "recurrent_constraint", "time_major"}) {
    const Json& value = Member(config, member);
    if (!value.IsNull() && !value.IsFalse() && !(value.IsNumber() && value.GetDouble() == 0)) {
      return layer.Unsupported(member);
    }
  }
  if (const Json& bias = Member(config, "bias_initializer"); !bias.IsNull()) {
    std::string note;
    Weight weight;
    weight.name = "bias";
    ASSIGN_OR_RETURN(const std::string begins, InitializerOf(bias, "Zeros", weight, &note));
    if (begins != "zeros") {
      return layer.Unsupported("another bias_initializer than Zeros");
    }
  }
  const bool backwards = Flag(config, "go_backwards", false);
  const bool sequences = Flag(config, "return_sequences", false);
  if (backwards && (both_ways || sequences)) {
    return layer.Unsupported("go_backwards");
  }
  if (!Flag(config, "use_bias", true)) {
    return layer.Unsupported("use_bias=false");
  }
  ASSIGN_OR_RETURN(const Cell cell, CellOf(layer, type, config));
  ASSIGN_OR_RETURN(const int64_t units, Whole(config, "units", 1, kMaxUnits));
  const int64_t directions = both_ways ? 2 : 1;
  const int64_t steps = x.extents[0];
  const int64_t width = x.extents[1];
  const auto out = static_cast<double>(cell.gates * units);
  Weight kernel{"kernel",
                {directions, cell.gates * units, width},
                static_cast<double>(width),
                out,
                "kernel_initializer",
                "GlorotUniform",
                ""};
  Weight recurrent{"recurrent_kernel",
                   {directions, cell.gates * units, units},
                   static_cast<double>(units),
                   out,
                   "recurrent_initializer",
                   "Orthogonal",
                   ""};
  ASSIGN_OR_RETURN(const std::string w, layer.Parameter(kernel));
  ASSIGN_OR_RETURN(const std::string r, layer.Parameter(recurrent));
  ASSIGN_OR_RETURN(const std::string b, BiasOf(layer, cell, config, directions, units));
  const std::string by_steps = layer.Permute(x.name, {1, 0, 2}, "by_steps");
  const std::string all = layer.Node(cell.op, {by_steps, w, r, b}, "states");
  layer.SetOne("hidden_size", units);
  layer.SetTexts("direction", {both_ways ? "bidirectional" : backwards ? "reverse" : "forward"});
  std::vector<std::string> activations = cell.activations;
  if (both_ways) {
    activations.insert(activations.end(), cell.activations.begin(), cell.activations.end());
  }
  layer.SetTexts("activations", activations);
  if (std::string_view(cell.op) == "GRU") {
    layer.SetOne("linear_before_reset", cell.two_biases ? 1 : 0);
  }
  if (sequences) {  // [steps, directions, rows, units]
    const std::string by_rows = layer.Permute(all, {2, 0, 1, 3}, "by_rows");
    return Value{layer.Reshape(by_rows, {steps, directions * units}, "sequence"),
                 {steps, directions * units}};
  }
  layer.SetOutputs({"", "last"});
  const std::string by_rows = layer.Permute(layer.Own("last"), {1, 0, 2}, "by_rows");
  return Value{layer.Reshape(by_rows, {directions * units}, "state"), {directions * units}};
}

// Keras 3 always writes both directions, Keras 2 the second one if it was given.
Status RequireAlike(const LayerWriter& layer, const Json& forwards, const Json& backwards) {
  if (Text(forwards, "class_name") != Text(backwards, "class_name")) {
    return layer.Unsupported("a backward_layer of another type");
  }
  const Json& own = Member(forwards, "config");
  for (const char* member :
       {"units", "activation", "recurrent_activation", "use_bias", "unit_forget_bias",
        "reset_after", "return_sequences", "trainable", "dropout", "recurrent_dropout",
        "kernel_regularizer", "recurrent_regularizer", "bias_regularizer"}) {
    if (Member(own, member) != Member(Member(backwards, "config"), member)) {
      return layer.Unsupported(fmt::format("a backward_layer with its own {}", member));
    }
  }
  return OkStatus();
}

Result<Value> BothWays(LayerWriter& layer, const Value& x) {
  const Json& merge = Member(layer.config(), "merge_mode");
  if (layer.config().IsObject() && layer.config().HasMember("merge_mode") &&
      !(merge.IsString() && std::string_view(merge.GetString()) == "concat")) {
    return layer.Unsupported("another merge_mode than concat");
  }
  const Json& inner = Member(layer.config(), "layer");
  const std::string cell = Text(inner, "class_name");
  if (!IsCell(cell)) {
    return layer.Unsupported(fmt::format("a layer of type {}", cell));
  }
  if (Has(layer.config(), "backward_layer")) {
    RETURN_IF_ERROR(RequireAlike(layer, inner, Member(layer.config(), "backward_layer")));
  }
  LayerWriter writer(inner, layer.name(), layer.call(), layer.network(), layer.trainable());
  return Recurrent(writer, cell, Member(inner, "config"), true, x);
}

}  // namespace

Result<Value> WriteRecurrentLayer(LayerWriter& layer, const std::vector<Value>& inputs,
                                  bool* found) {
  *found = true;
  const Value& x = inputs.front();
  const std::string& type = layer.type();
  if (IsCell(type)) {
    return Recurrent(layer, type, layer.config(), false, x);
  }
  if (type == "Bidirectional") {
    return BothWays(layer, x);
  }
  *found = false;
  return x;
}

}  // namespace sluice::models::keras
