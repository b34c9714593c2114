#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/graph/tensor_internal.h"
#include "models/kernels/kernels.h"

namespace sluice::models {
class GraphNode;
}

// The interface of an operator, and the table of all operators.
namespace sluice::models::graph {

// The attributes of a node by their ONNX names, with the default for each that the node lacks.
class Attributes {
 public:
  explicit Attributes(const GraphNode& node) : node_(node) {}
  bool Has(std::string_view name) const;
  int64_t Integer(std::string_view name, int64_t otherwise) const;
  float Number(std::string_view name, float otherwise) const;
  std::string Text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> Integers(std::string_view name) const;
  std::vector<float> Numbers(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;
  // The node's constant.
  const GraphNode& node() const { return node_; }

 private:
  const GraphNode& node_;
};

// The destination of a gradient: added if another node has already written there, else assigned.
struct GradientTarget {
  float* to = nullptr;  // nullptr: not needed
  bool add = false;
  explicit operator bool() const { return to != nullptr; }
};

// What a node can access. Omitted inputs, and outputs that no node reads, are nullptr.
struct OperatorContext {
  const Attributes* attributes = nullptr;
  const Kernels* kernels = nullptr;
  std::vector<Tensor*> inputs;
  std::vector<Tensor*> outputs;
  bool train = false;
  uint64_t key = 0;  // dropout: of (seed, step, node)

  bool Has(size_t k) const { return k < inputs.size() && inputs[k] != nullptr; }
  const Tensor& In(size_t k) const { return *inputs[k]; }
  Tensor& Out(size_t k = 0) const { return *outputs[k]; }
  bool Reads(size_t k) const { return k < outputs.size() && outputs[k] != nullptr; }

  // The gradient of an output; nullptr: none has reached it.
  const float* Back(size_t k = 0) const {
    return Reads(k) && outputs[k]->gradient_owner().written ? outputs[k]->gradient : nullptr;
  }
  // For operators that write every element of an input's gradient.
  GradientTarget Target(size_t k) const;
  // For operators that add to some elements: zeros if nothing was written yet; nullptr: not needed.
  float* Zeroed(size_t k) const;

  // Sets the shape and type of an output.
  Status Shaped(Shape shape, ElementType type = ElementType::kFloat, size_t k = 0) const;
  // The integers of an input that must be known before a batch, such as the shape for Reshape.
  Result<std::vector<int64_t>> Known(size_t k, std::string_view what) const;
  Status NeedFloat(size_t k) const;
};

// One node of a graph. Plan is called for each batch size and may keep what it computes; the
// outputs have memory from Forward on. A hostile graph may contain any attribute and shape: Plan
// refuses what Forward and Backward cannot handle. Not thread-safe.
class Operator {
 public:
  virtual ~Operator() = default;
  virtual Status Plan(const OperatorContext& node) = 0;
  virtual void Forward(const OperatorContext& node) = 0;
  // Computes the inputs' gradients from those of the outputs (Back). Operators without float
  // outputs have none.
  virtual void Backward(const OperatorContext& /*node*/) {}
  // Equal inputs always give equal outputs, in training as in prediction.
  virtual bool IsFunction() const { return true; }
  // Its output shares the memory of its first input, with another shape.
  virtual bool IsView() const { return false; }
  // Once planned: each row of the last axis of the output is made of those of the inputs, side by
  // side. An input whose operator leaves gaps between rows (Tensor::line) is computed right there.
  virtual bool JoinsRows() const { return false; }
  virtual bool LeavesGaps() const { return false; }
};

template <typename T>
std::unique_ptr<Operator> MakeOperator() {
  return std::make_unique<T>();
}

struct OperatorEntry {
  std::string_view name;  // as in ONNX
  size_t least_inputs = 1;
  size_t most_inputs = 1;
  size_t most_outputs = 1;
  std::string_view attributes;  // the allowed ones, separated by blanks; others are refused
  std::unique_ptr<Operator> (*make)() = nullptr;
};

// nullptr: no such operator.
const OperatorEntry* FindOperator(std::string_view name);
std::span<const OperatorEntry> Operators();

// One list for each file of operators.
std::span<const OperatorEntry> ElementwiseOperators();
std::span<const OperatorEntry> ArithmeticOperators();
std::span<const OperatorEntry> LogicOperators();
std::span<const OperatorEntry> ProductOperators();
std::span<const OperatorEntry> ConvolutionOperators();
std::span<const OperatorEntry> RecurrentOperators();
std::span<const OperatorEntry> NormalisationOperators();
std::span<const OperatorEntry> ReductionOperators();
std::span<const OperatorEntry> ShapeOperators();
std::span<const OperatorEntry> MoveOperators();
std::span<const OperatorEntry> StridedOperators();
std::span<const OperatorEntry> GatherOperators();
std::span<const OperatorEntry> EmbeddingOperators();
std::span<const OperatorEntry> PenaltyOperators();

}  // namespace sluice::models::graph
