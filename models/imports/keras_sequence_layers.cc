#include <fmt/core.h>

#include <algorithm>

#include "models/imports/keras_network_internal.h"

// Layers over sequences: [rows, steps, channels] in Keras, [rows, channels, steps] in ONNX.
namespace sluice::models::keras {
namespace {

constexpr int64_t kMaxSteps = 4'096;
constexpr int64_t kMaxFilters = 1 << 16;

// A window that moves along the steps.
struct Window {
  int64_t size = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding
  int64_t steps = 0;              // of the output
};

Result<Window> WindowOf(LayerWriter& layer, const Value& x, const char* size, bool pooling) {
  if (x.extents.size() != 2 || x.extents[0] < 1) {
    return layer.Unsupported("an input of other than [rows, steps, channels]");
  }
  if (Text(layer.config(), "data_format", "channels_last") != "channels_last") {
    return layer.Unsupported("channels_first");
  }
  Window window;
  ASSIGN_OR_RETURN(window.size, Whole(layer.config(), size, 1, kMaxSteps));
  ASSIGN_OR_RETURN(window.stride,
                   Whole(layer.config(), "strides", 1, kMaxSteps, pooling ? window.size : 1));
  if (!pooling) {
    ASSIGN_OR_RETURN(window.dilation, Whole(layer.config(), "dilation_rate", 1, kMaxSteps, 1));
  }
  const int64_t steps = x.extents[0];
  const int64_t span = (window.size - 1) * window.dilation + 1;
  const std::string padding = Text(layer.config(), "padding", "valid");
  if (padding == "same") {
    const int64_t out = (steps + window.stride - 1) / window.stride;
    const int64_t all = std::max<int64_t>((out - 1) * window.stride + span - steps, 0);
    window.before = all / 2;
    window.after = all - window.before;
  } else if (padding == "causal" && !pooling) {
    window.before = span - 1;
  } else if (padding != "valid") {
    return layer.Unsupported(fmt::format("padding '{}'", padding));
  }
  window.steps = (steps + window.before + window.after - span) / window.stride + 1;
  if (steps + window.before + window.after < span) {
    return InvalidArgument(fmt::format("layer '{}' ({}): a window of {} of {} steps", layer.name(),
                                       layer.type(), span, steps));
  }
  return window;
}

void SetWindow(const Window& window, LayerWriter* layer) {
  layer->Set("kernel_shape", {window.size});
  layer->Set("strides", {window.stride});
  layer->Set("pads", {window.before, window.after});
}

Result<Value> Convolved(LayerWriter& layer, const Value& x) {
  RETURN_IF_ERROR(layer.Refuse({"activity_regularizer", "kernel_constraint", "bias_constraint",
                                "lora_rank", "quantization_config"}));
  ASSIGN_OR_RETURN(const Window window, WindowOf(layer, x, "kernel_size", false));
  ASSIGN_OR_RETURN(const int64_t filters, Whole(layer.config(), "filters", 1, kMaxFilters));
  ASSIGN_OR_RETURN(const int64_t groups, Whole(layer.config(), "groups", 1, kMaxFilters, 1));
  const int64_t channels = x.extents[1];
  if (channels % groups != 0 || filters % groups != 0) {
    return InvalidArgument(
        fmt::format("layer '{}' (Conv1D): {} channels and {} filters in {} groups", layer.name(),
                    channels, filters, groups));
  }
  const int64_t channels_of_group = channels / groups;
  const auto fan_in = static_cast<double>(window.size * channels_of_group);
  const auto fan_out = static_cast<double>(window.size * filters);
  ASSIGN_OR_RETURN(const std::string kernel,
                   layer.Parameter({"kernel",
                                    {filters, channels / groups, window.size},
                                    fan_in,
                                    fan_out,
                                    "kernel_initializer",
                                    "GlorotUniform",
                                    "kernel_regularizer"}));
  std::vector<std::string> inputs = {layer.Permute(x.name, {0, 2, 1}, "channels"), kernel};
  if (Flag(layer.config(), "use_bias", true)) {
    ASSIGN_OR_RETURN(
        const std::string bias,
        layer.Parameter(
            {"bias", {filters}, fan_in, fan_out, "bias_initializer", "Zeros", "bias_regularizer"}));
    inputs.push_back(bias);
  }
  std::string y = layer.Node("Conv", inputs, "convolved");
  SetWindow(window, &layer);
  layer.Set("dilations", {window.dilation});
  layer.SetOne("group", groups);
  y = layer.Permute(y, {0, 2, 1}, "steps");
  ASSIGN_OR_RETURN(y, layer.Activate(y, Member(layer.config(), "activation"), "activation"));
  return Value{y, {window.steps, filters}};
}

Result<Value> Pooled(LayerWriter& layer, const Value& x) {
  ASSIGN_OR_RETURN(const Window window, WindowOf(layer, x, "pool_size", true));
  const bool most = layer.type() == "MaxPooling1D";
  const std::string channels = layer.Permute(x.name, {0, 2, 1}, "channels");
  const std::string y = layer.Node(most ? "MaxPool" : "AveragePool", {channels}, "pooled");
  SetWindow(window, &layer);
  return Value{layer.Permute(y, {0, 2, 1}, "steps"), {window.steps, x.extents[1]}};
}

Result<Value> PooledWhole(LayerWriter& layer, const Value& x) {
  if (x.extents.size() != 2) {
    return layer.Unsupported("an input of other than [rows, steps, channels]");
  }
  if (Text(layer.config(), "data_format", "channels_last") != "channels_last") {
    return layer.Unsupported("channels_first");
  }
  const bool keep = Flag(layer.config(), "keepdims", false);
  const bool most = layer.type() == "GlobalMaxPooling1D";
  const std::string y = layer.Node(most ? "ReduceMax" : "ReduceMean", {x.name}, "pooled");
  layer.Set("axes", {1});
  layer.SetOne("keepdims", keep ? 1 : 0);
  return Value{y,
               keep ? std::vector<int64_t>{1, x.extents[1]} : std::vector<int64_t>{x.extents[1]}};
}

}  // namespace

Result<Value> WriteSequenceLayer(LayerWriter& layer, const std::vector<Value>& inputs,
                                 bool* found) {
  *found = true;
  const std::string& type = layer.type();
  const Value& x = inputs.front();
  if (type == "Conv1D") {
    return Convolved(layer, x);
  }
  if (type == "MaxPooling1D" || type == "AveragePooling1D") {
    return Pooled(layer, x);
  }
  if (type == "GlobalMaxPooling1D" || type == "GlobalAveragePooling1D") {
    return PooledWhole(layer, x);
  }
  *found = false;
  return x;
}

}  // namespace sluice::models::keras
