#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "models/graph/operator_internal.h"
#include "models/graph/tensor_internal.h"
#include "models/model.pb.h"

namespace sluice::models::graph {

// For messages: "node '/fc/Gemm' (Gemm)".
std::string NameOf(const GraphNode& node);

// A graph is walked for every batch. The largest that was seen of PyTorch has 2,000 nodes.
constexpr int kMostNodes = 20'000;
// It stands in the plan, which goes to every process and into the catalog.
constexpr size_t kMostGraphBytes = size_t{64} << 20;
// Dense parameters are pulled and their gradients pushed whole, for every batch.
constexpr int64_t kMostDenseBytes = int64_t{256} << 20;
// Of all values of one batch together, gradients not counted: 4 GiB.
constexpr int64_t kMostElementsTogether = int64_t{1} << 30;

// A checked graph with the memory of one batch. Shapes and constants are worked out once per batch
// size. Not thread-safe; one per thread.
class GraphRun {
 public:
  // Refuses what could not be run: unknown operators and attributes, values that nobody makes,
  // cycles, sizes beyond the limits. Nothing in the graph is taken on trust. `kernels` outlives it.
  static Result<std::unique_ptr<GraphRun>> Make(const NetworkGraph& graph, const Kernels& kernels);

  const NetworkGraph& graph() const { return graph_; }
  // nullptr: there is no such value, or nobody reads it.
  Tensor* Find(const std::string& name);
  Tensor& output() { return tensors_[output_]; }

  // Of all values of a batch of the size that was planned last.
  int64_t elements() const { return elements_; }

  // Makes ready for batches of so many rows. Fails where an operator cannot take them.
  Status Plan(int64_t rows);
  // Of inputs, after Plan: memory for their elements, which stays as it is until the next Plan.
  void Allocate(Tensor* input);

  // The elements of inputs, parameters and tables are where their pointers say. `key` decides what
  // dropout leaves out.
  void Forward(bool train, uint64_t key);
  // Before Backward, after Forward: memory for the gradients of all but parameters and tables.
  void PrepareBackward();
  // From the output's gradient, which is in place, to those of parameters and tables, which are
  // where their pointers say; `written` says which of them something came back to.
  void Backward();

 private:
  struct Step {
    explicit Step(const GraphNode& of) : node(&of), attributes(of) {}
    const GraphNode* node;
    Attributes attributes;
    std::unique_ptr<Operator> run;
    OperatorContext context;
    uint64_t number = 0;  // among the graph's nodes: what dropout counts by
    bool learns = false;  // somebody wants what it gives back
    bool fixed = false;   // reads only constants: runs once per batch size
    bool done = false;
  };
  GraphRun(const NetworkGraph& graph, const Kernels& kernels);
  Status AddGiven();
  Status AddSteps();
  Status CheckTables() const;
  Status AddTensor(const std::string& name);
  Status PlanStep(Step* step);
  size_t IndexOf(const Tensor& tensor) const {
    return static_cast<size_t>(&tensor - tensors_.data());
  }

  const NetworkGraph graph_;
  const Kernels& kernels_;
  std::unordered_map<std::string, size_t> names_;
  std::vector<Tensor> tensors_;  // inputs, parameters and tables first
  size_t given_ = 0;
  size_t output_ = 0;
  std::vector<uint32_t> readers_;  // of each tensor
  std::vector<Step> steps_;        // those that the output depends on

  // Of the batch size at hand.
  int64_t rows_ = -1;
  int64_t elements_ = 0;
  bool allocated_ = false;
  bool prepared_ = false;
  std::vector<std::vector<float>> numbers_;
  std::vector<std::vector<int64_t>> integers_;
  std::vector<std::vector<float>> gradients_;
};

}  // namespace sluice::models::graph
