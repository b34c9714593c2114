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

// What an operator is to the graph that runs it, and the one table of all of them.
namespace sluice::models::graph {

// The attributes of a node as ONNX names them; what the node does not say is the default.
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
  // What else the node holds: its constant.
  const GraphNode& node() const { return node_; }

 private:
  const GraphNode& node_;
};

// Where a gradient goes: to += when somebody has written there before, else to =.
struct GradientTarget {
  float* to = nullptr;  // nullptr: nobody wants it
  bool add = false;
  explicit operator bool() const { return to != nullptr; }
};

// A node's surroundings. Inputs that the node leaves out are nullptr, as are outputs that nobody
// reads.
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

  // What came back to an output; nullptr when nothing did.
  const float* Back(size_t k = 0) const {
    return Reads(k) && outputs[k]->written ? outputs[k]->gradient : nullptr;
  }
  // For whoever writes every element of an input's gradient.
  GradientTarget Target(size_t k) const;
  // For whoever adds to some: zero where nobody has written; nullptr when nobody wants it.
  float* Zeroed(size_t k) const;

  // Sets shape and type of an output.
  Status Shaped(Shape shape, ElementType type = ElementType::kFloat, size_t k = 0) const;
  // The integers of an input that must be known before a batch, such as the shape that Reshape
  // makes.
  Result<std::vector<int64_t>> Known(size_t k, std::string_view what) const;
  Status NeedFloat(size_t k) const;
};

// One node of a graph. Plan is called for each batch size and may keep what follows from it; memory
// of the outputs is there from Forward on. A hostile graph may contain any attribute and shape:
// Plan refuses what the other two could not do. Not thread-safe.
class Operator {
 public:
  virtual ~Operator() = default;
  virtual Status Plan(const OperatorContext& node) = 0;
  virtual void Forward(const OperatorContext& node) = 0;
  // From Back to the inputs' gradients. Operators without one have no float outputs to learn by.
  virtual void Backward(const OperatorContext& /*node*/) {}
  // The same inputs always give the same outputs, in training as in prediction.
  virtual bool IsFunction() const { return true; }
  // Its output is the memory of its first input in another shape.
  virtual bool IsView() const { return false; }
};

template <typename T>
std::unique_ptr<Operator> MakeOperator() {
  return std::make_unique<T>();
}

struct OperatorEntry {
  std::string_view name;  // ONNX's
  size_t least_inputs = 1;
  size_t most_inputs = 1;
  size_t most_outputs = 1;
  std::string_view attributes;  // allowed ones, by blanks; any other is refused: it would say more
  std::unique_ptr<Operator> (*make)() = nullptr;
};

// nullptr: no such operator.
const OperatorEntry* FindOperator(std::string_view name);
std::span<const OperatorEntry> Operators();

// One list per file of operators.
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
std::span<const OperatorEntry> GatherOperators();

}  // namespace sluice::models::graph
