#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "models/imports/compiled_model_internal.h"
#include "models/imports/keras_json_internal.h"
#include "models/imports/keras_reader_internal.h"

// The compiled form of a function in Keras: its model's JSON, and the weights as Keras has them.
// Those of recurrent layers and convolutions are put into ONNX's order.
namespace sluice::models {
namespace {

using keras::Json;

// One weight of the form, and where it goes.
struct GivenWeight {
  std::string parameter;  // "dense/kernel"
  std::vector<int64_t> shape;
  const char* bytes = nullptr;
  int64_t size = 0;

  float At(int64_t place) const {
    float value = 0;
    std::memcpy(&value, bytes + place * static_cast<int64_t>(sizeof(float)), sizeof(float));
    return value;
  }
};

int64_t SizeOf(const GraphParameter& parameter) {
  int64_t size = 1;
  for (const int64_t extent : parameter.shape()) {
    size *= std::max<int64_t>(extent, 0);
  }
  return size;
}

// The layer's operator: "LSTM", "GRU", "RNN", "Conv"; "": another.
std::string OpOfLayer(const std::string& layer, const NetworkGraph& graph) {
  for (const GraphNode& node : graph.nodes()) {
    const std::string& op = node.op_type();
    const bool own =
        std::any_of(node.outputs().begin(), node.outputs().end(),
                    [&](const std::string& output) { return output.starts_with(layer + "/"); });
    if (own && (op == "LSTM" || op == "GRU" || op == "RNN" || op == "Conv")) {
      return op;
    }
  }
  return "";
}

// The place of Keras's gate in ONNX's order: of an LSTM input, forget, cell, output there, and
// input, output, forget, cell here. Those of a GRU agree.
int64_t GateHere(const std::string& op, int64_t gate) {
  constexpr int64_t kLstm[] = {0, 2, 3, 1};
  return op == "LSTM" && gate < 4 ? kLstm[gate] : gate;
}

class Placing {
 public:
  Placing(const GivenWeight& given, const std::string& op, int64_t direction,
          const GraphParameter& parameter, std::vector<float>* values)
      : given_(given), op_(op), direction_(direction), parameter_(parameter), values_(*values) {}

  // False: the weight does not have the parameter's shape.
  bool Place() {
    const bool same = std::equal(given_.shape.begin(), given_.shape.end(),
                                 parameter_.shape().begin(), parameter_.shape().end());
    if (op_ == "Conv" && given_.shape.size() == 3) {
      return Turn();
    }
    if (same) {
      for (int64_t i = 0; i < given_.size; ++i) {
        values_[static_cast<size_t>(i)] = given_.At(i);
      }
      return true;
    }
    return !op_.empty() && (parameter_.shape_size() == 3 ? PlaceGates() : PlaceBiases());
  }

 private:
  // [steps, channels, filters] to [filters, channels, steps].
  bool Turn() {
    const int64_t steps = given_.shape[0], channels = given_.shape[1], filters = given_.shape[2];
    if (parameter_.shape_size() != 3 || parameter_.shape(0) != filters ||
        parameter_.shape(1) != channels || parameter_.shape(2) != steps) {
      return false;
    }
    for (int64_t f = 0; f < filters; ++f) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t s = 0; s < steps; ++s) {
          values_[static_cast<size_t>((f * channels + c) * steps + s)] =
              given_.At((s * channels + c) * filters + f);
        }
      }
    }
    return true;
  }

  // [width, gates x units] to this direction's part of [directions, gates x units, width].
  bool PlaceGates() {
    const int64_t columns = parameter_.shape(1), width = parameter_.shape(2);
    const int64_t gates = op_ == "LSTM" ? 4 : op_ == "GRU" ? 3 : 1;
    if (given_.shape != std::vector<int64_t>{width, columns} || direction_ >= parameter_.shape(0) ||
        columns % gates != 0) {
      return false;
    }
    const int64_t units = columns / gates;
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t row = GateHere(op_, column / units) * units + column % units;
      for (int64_t w = 0; w < width; ++w) {
        values_[static_cast<size_t>((direction_ * columns + row) * width + w)] =
            given_.At(w * columns + column);
      }
    }
    return true;
  }

  // [gates x units], or [2, gates x units] of a GRU, to this direction's part of [directions, ...].
  bool PlaceBiases() {
    const int64_t own = parameter_.shape_size() == 2 ? parameter_.shape(1) : -1;
    const int64_t gates = op_ == "LSTM" ? 4 : 1;
    if (given_.size != own || direction_ >= parameter_.shape(0) || own % gates != 0) {
      return false;
    }
    const int64_t units = own / gates;
    for (int64_t i = 0; i < own; ++i) {
      values_[static_cast<size_t>(direction_ * own + GateHere(op_, i / units) * units +
                                  i % units)] = given_.At(i);
    }
    return true;
  }

  const GivenWeight& given_;
  const std::string& op_;
  const int64_t direction_;
  const GraphParameter& parameter_;
  std::vector<float>& values_;
};

Status DamagedForm() {
  return InvalidArgument("the compiled form of the model is damaged")
      .Hint("CREATE OR REPLACE MODEL TYPE has it compiled anew");
}

// `left`: the bytes of the weights that follow.
Result<GivenWeight> ReadWeight(const Json& listed, std::string_view* left) {
  GivenWeight weight;
  const auto shape =
      listed.IsObject() ? keras::Extents(keras::Member(listed, "shape")) : std::nullopt;
  if (!shape) {
    return DamagedForm();
  }
  weight.parameter =
      fmt::format("{}/{}", keras::Text(listed, "layer"), keras::Text(listed, "name"));
  weight.shape = *shape;
  weight.size = weight.shape.empty() ? 0 : 1;
  const auto there = static_cast<int64_t>(left->size() / sizeof(float));
  for (const int64_t extent : weight.shape) {
    if (extent < 1 || extent > there) {
      return DamagedForm();
    }
    weight.size = std::min(weight.size * extent, there + 1);
  }
  if (weight.size > there) {
    return DamagedForm();
  }
  weight.bytes = left->data();
  left->remove_prefix(static_cast<size_t>(weight.size) * sizeof(float));
  return weight;
}

}  // namespace

Result<ImportedNetwork> ReadCompiledKeras(std::string_view compiled) {
  rapidjson::Document header;
  const size_t end = compiled.find('\n');
  if (end == std::string_view::npos ||
      !keras::ParseJson(std::string(compiled.substr(0, end)), &header).ok() || !header.IsObject()) {
    return DamagedForm();
  }
  std::string_view left = compiled.substr(end + 1);
  const double bytes = keras::Number(header, "json_bytes", -1);
  if (!(bytes >= 0 && bytes <= static_cast<double>(left.size()))) {
    return DamagedForm();
  }
  Result<ImportedNetwork> read = ReadKeras(left.substr(0, static_cast<size_t>(bytes)));
  if (!read.ok()) {
    return read.status().MovedTo({});  // its places are those of the JSON, which nobody has seen
  }
  ImportedNetwork network = std::move(read).value();
  left.remove_prefix(static_cast<size_t>(bytes));
  const Json& listed = keras::Member(header, "weights");
  std::map<std::string, int64_t> seen;  // a layer that reads both ways has each weight twice
  std::map<std::string, const GraphParameter*> parameters;
  for (const GraphParameter& parameter : network.graph.parameters()) {
    parameters[parameter.name()] = &parameter;
  }
  for (rapidjson::SizeType i = 0; listed.IsArray() && i < listed.Size(); ++i) {
    ASSIGN_OR_RETURN(const GivenWeight given, ReadWeight(listed[i], &left));
    const auto parameter = parameters.find(given.parameter);
    if (parameter == parameters.end()) {
      continue;  // no operator reads it
    }
    if (given.shape.empty()) {
      network.notes.push_back(fmt::format(
          "{} is too large to be carried over: it begins by its initialiser", given.parameter));
      continue;
    }
    std::vector<float>& values = network.values[given.parameter];
    const int64_t size = SizeOf(*parameter->second);
    const std::string layer = given.parameter.substr(0, given.parameter.rfind('/'));
    constexpr int64_t kDirections = 2;
    const bool fits = given.size <= size && size <= kDirections * given.size;
    values.resize(fits ? static_cast<size_t>(size) : 0);
    const std::string op = OpOfLayer(layer, network.graph);
    if (!fits ||
        !Placing(given, op, seen[given.parameter]++, *parameter->second, &values).Place()) {
      return InvalidArgument(
          fmt::format("'{}' of the Keras model has another shape than its layer", given.parameter));
    }
    const bool finite =
        std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
    if (!finite) {
      return InvalidArgument(fmt::format("'{}' of the Keras model is not finite", given.parameter));
    }
  }
  return network;
}

}  // namespace sluice::models
