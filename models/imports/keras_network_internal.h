#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/imports/imported_network_internal.h"
#include "models/imports/keras_json_internal.h"

namespace sluice::models::keras {

// A value of the network: its name, and its extents behind the rows.
struct Value {
  std::string name;
  std::vector<int64_t> extents;
};

// A parameter of a layer as Keras makes it.
struct Weight {
  const char* name = "";           // "kernel"
  std::vector<int64_t> shape;      // as it is stored here
  double fan_in = 1, fan_out = 1;  // as Keras counts them
  const char* initializer = "";    // the config's member that says how it begins
  const char* otherwise = "";      // where that is not there: the class of the initialiser
  const char* regularizer = "";    // the config's member; "": none
};

// One layer while its operators are written.
class LayerWriter {
 public:
  // `name`: of the layer; what stands inside of another one has that one's. `call`: which use of a
  // shared layer this is; its parameters are made by the first.
  LayerWriter(const Json& layer, std::string name, size_t call, ImportedNetwork* network);

  const std::string& name() const { return name_; }
  const Json& config() const { return *config_; }
  const std::string& type() const { return type_; }

  // A node of this layer whose output has this name behind the layer's; attributes are given to
  // the node that was made last.
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& part);
  void Set(const char* attribute, const std::vector<int64_t>& integers);
  void SetOne(const char* attribute, int64_t integer) { Set(attribute, {integer}); }
  void SetNumber(const char* attribute, float number);
  void SetTexts(const char* attribute, const std::vector<std::string>& texts);
  // More outputs of the last node, "" for those that nobody reads.
  void SetOutputs(const std::vector<std::string>& parts);
  std::string Integers(const std::vector<int64_t>& values, const std::string& part);
  std::string Scalar(float value, const std::string& part);
  std::string Zeros(const std::vector<int64_t>& shape, const std::string& part);
  std::string Reshape(const std::string& value, std::vector<int64_t> extents,
                      const std::string& part);
  std::string Permute(const std::string& value, const std::vector<int64_t>& axes,
                      const std::string& part);

  // What the operators read of a parameter of this layer: it, or it with its penalty.
  Result<std::string> Parameter(const Weight& weight);
  // One that begins with these values.
  std::string ParameterOf(const std::string& part, const std::vector<int64_t>& shape,
                          std::vector<float> values);
  void Statistics(const std::string& part, int64_t width, const char* initializer, double momentum);
  // By the name of Keras's function; "linear" and none are the value itself.
  Result<std::string> Activate(const std::string& value, const Json& function,
                               const std::string& part);
  // What has no counterpart here and would mean something; fails where it is there.
  Status Refuse(const std::vector<const char*>& members) const;
  Status Unsupported(const std::string& what) const;
  bool trainable() const { return trainable_; }
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
};

// "uniform:0.25" of an initialiser of Keras; `note`: what is otherwise here, or "".
Result<std::string> InitializerOf(const Json& initializer, const std::string& otherwise,
                                  const Weight& weight, std::string* note);
// The function of ONNX, for the gates of recurrent layers; "" where it has none.
std::string FunctionOf(const std::string& keras);

// The layers themselves. `inputs` is not empty. False in `found`: there is no such layer.
Result<Value> WriteLayer(LayerWriter& layer, const std::vector<Value>& inputs, bool* found);
Result<Value> WriteSequenceLayer(LayerWriter& layer, const std::vector<Value>& inputs, bool* found);
Result<Value> WriteRecurrentLayer(LayerWriter& layer, const std::vector<Value>& inputs,
                                  bool* found);

}  // namespace sluice::models::keras
