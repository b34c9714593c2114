#include "models/imports/keras_reader_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "models/imports/keras_network_internal.h"

namespace sluice::models {
namespace {

using keras::Flag;
using keras::Has;
using keras::Json;
using keras::Member;
using keras::Text;
using keras::Value;

constexpr rapidjson::SizeType kMaxLayers = 2'000;

const std::vector<std::string>& LayerTypes() {
  static const std::vector<std::string> types = {"Dense",
                                                 "Embedding",
                                                 "Flatten",
                                                 "Reshape",
                                                 "Concatenate",
                                                 "Add",
                                                 "Subtract",
                                                 "Multiply",
                                                 "Average",
                                                 "Maximum",
                                                 "Minimum",
                                                 "Dot",
                                                 "Dropout",
                                                 "Activation",
                                                 "ReLU",
                                                 "LeakyReLU",
                                                 "ELU",
                                                 "Softmax",
                                                 "BatchNormalization",
                                                 "LayerNormalization",
                                                 "Conv1D",
                                                 "MaxPooling1D",
                                                 "AveragePooling1D",
                                                 "GlobalMaxPooling1D",
                                                 "GlobalAveragePooling1D",
                                                 "LSTM",
                                                 "GRU",
                                                 "SimpleRNN",
                                                 "Bidirectional",
                                                 "TimeDistributed",
                                                 "InputLayer"};
  return types;
}

std::string NameOf(const Json& layer) {
  return Text(layer, "name", Text(Member(layer, "config"), "name"));
}

// The origin of a value: a layer, and which of its uses.
using Source = std::pair<std::string, int64_t>;

// ["dense", 0, 0, ...] of Keras 2, or the keras_history of a tensor of Keras 3.
std::optional<Source> SourceOf(const Json& reference) {
  const Json& history =
      reference.IsObject() ? Member(Member(reference, "config"), "keras_history") : reference;
  if (!history.IsArray() || history.Size() < 3 || !history[0].IsString() || !history[1].IsInt64() ||
      !history[2].IsInt64() || history[2].GetInt64() != 0) {
    return std::nullopt;
  }
  return Source(history[0].GetString(), history[1].GetInt64());
}

// Reads a list of references, a single one, or an object of one for each name.
std::optional<std::vector<Source>> SourcesOf(const Json& references) {
  if (const auto one = SourceOf(references)) {
    return std::vector<Source>{*one};
  }
  std::vector<Source> sources;
  if (references.IsObject()) {
    for (const auto& named : references.GetObject()) {
      const auto source = SourceOf(named.value);
      if (!source) {
        return std::nullopt;
      }
      sources.push_back(*source);
    }
    return sources;
  }
  if (!references.IsArray()) {
    return std::nullopt;
  }
  for (const Json& reference : references.GetArray()) {
    const auto source = SourceOf(reference);
    if (!source) {
      return std::nullopt;
    }
    sources.push_back(*source);
  }
  return sources;
}

// The inputs of one use of a layer: [[...], ...] in Keras 2, {"args": [...]} in Keras 3.
std::optional<std::vector<Source>> InputsOf(const Json& use) {
  if (!use.IsObject()) {
    return SourcesOf(use);
  }
  const Json& arguments = Member(use, "args");
  if (!arguments.IsArray() || arguments.Size() != 1) {
    return std::nullopt;
  }
  return SourcesOf(arguments[0]);
}

// The argument of a call, beside the inputs, that another layer computes or that has an effect on
// predictions; "": none. Keras writes `"training": false` and `"mask": null` by itself.
std::string OtherArgument(const Json& use) {
  const auto of_object = [](const Json& arguments) -> std::string {
    if (arguments.IsObject()) {
      for (const auto& argument : arguments.GetObject()) {
        const bool layers = argument.value.IsObject() || argument.value.IsArray();
        if (layers || argument.value.IsTrue()) {
          return argument.name.GetString();
        }
      }
    }
    return "";
  };
  if (use.IsObject()) {
    return of_object(Member(use, "kwargs"));
  }
  for (const Json& reference : use.GetArray()) {  // ["dense", 0, 0, {...}] of Keras 2
    if (reference.IsArray() && reference.Size() > 3) {
      if (std::string found = of_object(reference[3]); !found.empty()) {
        return found;
      }
    }
  }
  return "";
}

class KerasReader {
 public:
  Result<ImportedNetwork> Read(const Json& model) {
    const Json& config = Member(model, "config");
    const Json& layers = config.IsArray() ? config : Member(config, "layers");
    const std::string type = Text(model, "class_name");
    if (!layers.IsArray() || layers.Empty()) {
      return InvalidArgument("this is JSON, and not of a Keras model: it has no layers")
          .Hint("model.to_json() of Keras prints what is expected");
    }
    if (layers.Size() > kMaxLayers) {
      return InvalidArgument(
          fmt::format("a model of {} layers: at most {}", layers.Size(), kMaxLayers));
    }
    for (const Json& layer : layers.GetArray()) {
      const std::string name = NameOf(layer);
      if (name.empty()) {
        return InvalidArgument("a layer has no name");
      }
      if (!layers_.emplace(name, &layer).second) {
        return InvalidArgument(fmt::format("two layers are called '{}'", name));
      }
    }
    RETURN_IF_ERROR(type == "Sequential" ? ReadSequential(layers) : ReadFunctional(config));
    RETURN_IF_ERROR(ReadInputs());
    return std::move(network_);
  }

 private:
  // A chain of layers, each of which reads the previous one.
  Status ReadSequential(const Json& layers) {
    Value value;
    for (const Json& layer : layers.GetArray()) {
      const bool first = value.name.empty();
      if (Text(layer, "class_name") == "InputLayer") {
        ASSIGN_OR_RETURN(value, AddInput(layer, NameOf(layer)));
        continue;
      }
      if (first) {
        const std::string own = Text(Member(layer, "config"), "name");
        ASSIGN_OR_RETURN(value, AddInput(layer, own + "_input"));
      }
      ASSIGN_OR_RETURN(value, Write(layer, 0, {value}));
    }
    network_.graph.add_outputs(value.name);
    return OkStatus();
  }

  Status ReadFunctional(const Json& config) {
    const auto outputs = SourcesOf(Member(config, "output_layers"));
    if (!outputs) {
      return InvalidArgument("the model does not say which layers are its output");
    }
    if (outputs->size() != 1) {
      return InvalidArgument(
                 fmt::format("the model has {} outputs: a network has one", outputs->size()))
          .Hint("make one of them the only output");
    }
    // In the listed order, which is the order of computation.
    for (const Json& layer : Member(config, "layers").GetArray()) {
      const Json& uses = Member(layer, "inbound_nodes");
      const std::string name = NameOf(layer);
      for (int64_t use = 0; uses.IsArray() && use < static_cast<int64_t>(uses.Size()); ++use) {
        RETURN_IF_ERROR(ValueOf({name, use}).status());
      }
    }
    ASSIGN_OR_RETURN(const Value output, ValueOf(outputs->front()));
    network_.graph.add_outputs(output.name);
    return OkStatus();
  }

  // The value of a use of a layer, written when it is first read.
  Result<Value> ValueOf(const Source& source) {
    if (const auto found = values_.find(source); found != values_.end()) {
      return found->second;
    }
    const auto layer = layers_.find(source.first);
    if (layer == layers_.end()) {
      return InvalidArgument(fmt::format("there is no layer '{}'", source.first));
    }
    if (!open_.insert(source).second) {
      return InvalidArgument(fmt::format("layer '{}' reads what it gives itself", source.first));
    }
    constexpr size_t kMaxAhead = 100;
    if (open_.size() - values_.size() > kMaxAhead) {
      return InvalidArgument(
          fmt::format("layer '{}' stands far before those that it reads", source.first));
    }
    Result<Value> value = WriteUse(*layer->second, source);
    if (value.ok()) {
      values_.emplace(source, value.value());
    }
    return value;
  }

  Result<Value> WriteUse(const Json& layer, const Source& source) {
    if (Text(layer, "class_name") == "InputLayer") {
      return AddInput(layer, source.first);
    }
    const Json& uses = Member(layer, "inbound_nodes");
    if (!uses.IsArray() || source.second < 0 ||
        source.second >= static_cast<int64_t>(uses.Size())) {
      return InvalidArgument(
          fmt::format("layer '{}' has no use number {}", source.first, source.second));
    }
    const auto inputs = InputsOf(uses[static_cast<rapidjson::SizeType>(source.second)]);
    if (!inputs || inputs->empty()) {
      return Unimplemented(fmt::format("layer '{}' ({}) is called with other arguments than layers",
                                       source.first, Text(layer, "class_name")))
          .Hint("export the model to ONNX, which says it in operators");
    }
    const std::string other = OtherArgument(uses[static_cast<rapidjson::SizeType>(source.second)]);
    if (!other.empty()) {
      return Unimplemented(fmt::format("layer '{}' ({}) is called with {}, which is not supported",
                                       source.first, Text(layer, "class_name"), other))
          .Hint("export the model to ONNX, which says it in operators");
    }
    std::vector<Value> values;
    for (const Source& input : *inputs) {
      ASSIGN_OR_RETURN(Value value, ValueOf(input));
      values.push_back(std::move(value));
    }
    // The first use that is written creates the parameters.
    return Write(layer, used_[source.first]++, values);
  }

  Result<Value> AddInput(const Json& layer, const std::string& name) {
    const Json& config = Member(layer, "config");
    for (const char* member : {"batch_shape", "batch_input_shape", "batchInputShape"}) {
      auto shape = keras::Extents(Member(config, member));
      if (!shape || shape->empty()) {
        continue;
      }
      shape->erase(shape->begin());
      if (std::find(shape->begin(), shape->end(), -1) != shape->end()) {
        return InvalidArgument(fmt::format("input '{}' has an axis of no known size", name))
            .Hint("build the model with Input(shape=(so many,))");
      }
      const std::string type = Text(config, "dtype");
      ImportedInput input;
      input.name = name;
      input.ids = type.find("int") != std::string::npos;
      input.extents = *shape;
      network_.inputs.push_back(input);
      return Value{name, *shape};
    }
    return InvalidArgument(fmt::format("layer '{}' does not say which shape its input has", name))
        .Hint("build the model with Input(shape=(so many,))");
  }

  Result<Value> Write(const Json& layer, size_t call, const std::vector<Value>& inputs) {
    const std::string type = Text(layer, "class_name");
    if (type == "TimeDistributed") {
      return WriteTimeDistributed(layer, call, inputs);
    }
    keras::LayerWriter writer(layer, NameOf(layer), call, &network_);
    if (inputs.size() > 1 && !keras::JoinsInputs(type)) {
      return writer.Unsupported(fmt::format("a call with {} layers", inputs.size()));
    }
    bool found = false;
    for (const auto write :
         {keras::WriteLayer, keras::WriteSequenceLayer, keras::WriteRecurrentLayer}) {
      Result<Value> value = write(writer, inputs, &found);
      if (!value.ok() && value.status().message().find("layer '") == std::string::npos) {
        return Status(value.status()).Because(fmt::format("layer '{}' ({})", writer.name(), type));
      }
      if (found || !value.ok()) {
        return value;
      }
    }
    return Unknown(writer.name(), type);
  }

  // Dense is the only layer that processes steps as they are.
  Result<Value> WriteTimeDistributed(const Json& layer, size_t call,
                                     const std::vector<Value>& inputs) {
    const Json& inner = Member(Member(layer, "config"), "layer");
    if (Text(inner, "class_name") != "Dense") {
      return Unknown(NameOf(layer), "TimeDistributed of " + Text(inner, "class_name"));
    }
    keras::LayerWriter writer(inner, NameOf(layer), call, &network_,
                              Flag(Member(layer, "config"), "trainable", true));
    bool found = false;
    return keras::WriteLayer(writer, inputs, &found);
  }

  static Status Unknown(const std::string& name, const std::string& type) {
    Status unknown = Unimplemented(fmt::format("layer '{}' is a {}, which is not supported", name,
                                               type.empty() ? "layer without a type" : type));
    const auto near = NearestName(type, LayerTypes());
    const std::string otherwise = "export the model to ONNX, which says it in operators";
    return std::move(unknown).Hint(near ? fmt::format("did you mean {}? Or {}", *near, otherwise)
                                        : otherwise);
  }

  // Inputs that only embeddings read are ids, whatever their type in Keras.
  Status ReadInputs() {
    for (ImportedInput& input : network_.inputs) {
      size_t readers = 0;
      size_t embeddings = 0;
      for (const GraphNode& node : network_.graph.nodes()) {
        for (int k = 0; k < node.inputs_size(); ++k) {
          if (node.inputs(k) == input.name) {
            ++readers;
            embeddings += node.op_type() == "Gather" && k == 1 ? 1 : 0;
          }
        }
      }
      input.ids = input.ids || (readers > 0 && readers == embeddings);
      if (embeddings > 0 && embeddings < readers) {
        return Unimplemented(fmt::format("input '{}' is read as ids and as numbers", input.name))
            .Hint("give the model an input for each");
      }
    }
    return OkStatus();
  }

  std::map<std::string, const Json*> layers_;
  std::map<Source, Value> values_;
  std::set<Source> open_;
  std::map<std::string, size_t> used_;
  ImportedNetwork network_;
};

}  // namespace

Result<ImportedNetwork> ReadKeras(std::string_view json) {
  rapidjson::Document document;
  RETURN_IF_ERROR(keras::ParseJson(json, &document));
  return KerasReader().Read(document);
}

}  // namespace sluice::models
