#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "models/imports/onnx.pb.h"

namespace sluice::models {

// Writes ONNX files as an exporter would.
class OnnxBuilder {
 public:
  OnnxBuilder() {
    model.set_ir_version(7);
    model.add_operator_sets()->set_version(13);
  }

  // Extents behind the rows; 0: whatever there are.
  void Input(const std::string& name, const std::vector<int64_t>& extents,
             int type = onnx::Tensor::FLOAT) {
    onnx::Value* value = graph().add_inputs();
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor();
    tensor->set_element_type(type);
    tensor->mutable_shape()->add_dims()->set_name("rows");
    for (const int64_t extent : extents) {
      auto* dimension = tensor->mutable_shape()->add_dims();
      extent == 0 ? dimension->set_name("any") : dimension->set_value(extent);
    }
  }
  void Ids(const std::string& name, const std::vector<int64_t>& extents = {}) {
    Input(name, extents, onnx::Tensor::INT64);
  }
  onnx::Tensor& Floats(const std::string& name, const std::vector<int64_t>& dims,
                       float first = 0.1F) {
    onnx::Tensor* tensor = graph().add_initializers();
    tensor->set_name(name);
    tensor->set_data_type(onnx::Tensor::FLOAT);
    int64_t count = 1;
    for (const int64_t extent : dims) {
      tensor->add_dims(extent);
      count *= extent;
    }
    for (int64_t i = 0; i < count; ++i) {
      tensor->add_float_data(first * static_cast<float>(i + 1));
    }
    return *tensor;
  }
  onnx::Tensor& Integers(const std::string& name, const std::vector<int64_t>& values) {
    onnx::Tensor* tensor = graph().add_initializers();
    tensor->set_name(name);
    tensor->set_data_type(onnx::Tensor::INT64);
    tensor->add_dims(static_cast<int64_t>(values.size()));
    for (const int64_t value : values) {
      tensor->add_int64_data(value);
    }
    return *tensor;
  }
  onnx::Node& Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::string& output) {
    onnx::Node* node = graph().add_nodes();
    node->set_op_type(op);
    node->set_name("the " + op);
    for (const std::string& input : inputs) {
      node->add_inputs(input);
    }
    node->add_outputs(output);
    return *node;
  }
  static void Set(onnx::Node* node, const std::string& name, int64_t value) {
    onnx::Attribute* attribute = node->add_attributes();
    attribute->set_name(name);
    attribute->set_type(onnx::Attribute::INT);
    attribute->set_i(value);
  }
  void Output(const std::string& name) {
    graph().clear_outputs();
    graph().add_outputs()->set_name(name);
  }
  onnx::Graph& graph() { return *model.mutable_graph(); }
  std::string Bytes() const { return model.SerializeAsString(); }

  // Numbers a [rows, 1] and ids c [rows] (5 values), of a table, through a layer, to one number.
  static OnnxBuilder Small() {
    OnnxBuilder b;
    b.Input("a", {1});
    b.Ids("c");
    b.Floats("table", {5, 3});
    b.Floats("weight", {1, 4});
    b.Floats("bias", {1});
    b.Node("Gather", {"table", "c"}, "row");
    onnx::Node& join = b.Node("Concat", {"a", "row"}, "x");
    Set(&join, "axis", 1);
    onnx::Node& layer = b.Node("Gemm", {"x", "weight", "bias"}, "y");
    Set(&layer, "transB", 1);
    b.Output("y");
    return b;
  }

  onnx::Model model;
};

}  // namespace sluice::models
