#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"
#include "models/imports/keras_json_internal.h"

namespace sluice::models::keras {

// A value of the network: its name, and its extents after the rows.
struct Value {
  std::string name;
  std::vector<int64_t> extents;
};

// A parameter of a layer as in Keras.
struct Weight {
  const char* name = "";           // "kernel"
  std::vector<int64_t> shape;      // as it is stored here
  double fan_in = 1, fan_out = 1;  // as Keras counts them
  const char* initializer = "";    // the config's member with its initializer
  const char* otherwise = "";      // the initializer class if that member is missing
  const char* regularizer = "";    // the config's member; "": none
};

// Writes the operators of one layer.
class LayerWriter {
 public:
  // `name`: of the layer; a layer inside a wrapper has the wrapper's. `call`: which use of a shared
  // layer this is; the first creates the parameters. `trainable`: that of a wrapper.
  LayerWriter(const Json& layer, std::string name, size_t call, ImportedNetwork* network,
              bool trainable = true);

  const std::string& name() const { return name_; }
  const Json& config() const { return *config_; }
  ImportedNetwork* network() { return &network_; }
  size_t call() const { return call_; }
  const std::string& type() const { return type_; }

  // A node of this layer; its output is named by the layer and this name. Attributes are set on the
  // node that was added last.
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& part);
  void Set(const char* attribute, const std::vector<int64_t>& integers);
  void SetOne(const char* attribute, int64_t integer) { Set(attribute, {integer}); }
  void SetNumber(const char* attribute, float number);
  void SetTexts(const char* attribute, const std::vector<std::string>& texts);
  // Further outputs of the last node; "": not read.
  void SetOutputs(const std::vector<std::string>& parts);
  std::string Integers(const std::vector<int64_t>& values, const std::string& part);
  std::string Scalar(float value, const std::string& part);
  std::string Zeros(const std::vector<int64_t>& shape, const std::string& part);
  std::string Reshape(const std::string& value, std::vector<int64_t> extents,
                      const std::string& part);
  std::string Permute(const std::string& value, const std::vector<int64_t>& axes,
                      const std::string& part);

  // A parameter of this layer as its operators read it: with its penalty, if any.
  Result<std::string> Parameter(const Weight& weight);
  // One with these initial values.
  std::string ParameterOf(const std::string& part, const std::vector<int64_t>& shape,
                          std::vector<float> values);
  void Statistics(const std::string& part, int64_t width, const char* initializer, double momentum);
  // By the name of the Keras function; "linear" and none return the value itself.
  Result<std::string> Activate(const std::string& value, const Json& function,
                               const std::string& part);
  // Fails if the config has a setting that has an effect in Keras and no counterpart here.
  Status Refuse(const std::vector<const char*>& members) const;
  Status Unsupported(const std::string& what) const;
  bool trainable() const { return trainable_; }
  // Keras 3 gives some functions another meaning than Keras 2 does.
  bool keras3() const { return keras3_; }
  std::string Own(const std::string& part) const;

 private:
  Result<std::string> Penalised(const Weight& weight, const std::string& parameter);
  GraphParameter* Declare(const std::string& part, const std::vector<int64_t>& shape);

  ImportedNetwork& network_;
  const Json* config_;
  std::string name_;
  std::string type_;
  size_t call_;
  bool trainable_;
  bool keras3_;
};

// An initializer of Keras as "uniform:0.25"; `note`: where it deviates, or "".
Result<std::string> InitializerOf(const Json& initializer, const std::string& otherwise,
                                  const Weight& weight, std::string* note);
// The ONNX activation for gates of recurrent layers; "": none.
std::string FunctionOf(const std::string& keras);

// Whether a layer of this type reads several others.
bool JoinsInputs(std::string_view type);

// The layers. `inputs` is not empty, and is one value unless JoinsInputs. `found` false: the layer
// is unknown.
Result<Value> WriteLayer(LayerWriter& layer, const std::vector<Value>& inputs, bool* found);
Result<Value> WriteSequenceLayer(LayerWriter& layer, const std::vector<Value>& inputs, bool* found);
Result<Value> WriteRecurrentLayer(LayerWriter& layer, const std::vector<Value>& inputs,
                                  bool* found);

}  // namespace sluice::models::keras
