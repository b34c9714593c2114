#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "models/graph/operator_internal.h"
#include "models/graph/tensor_internal.h"
#include "models/model.pb.h"

namespace sluice::models::graph {

// For messages: "node '/fc/Gemm' (Gemm)".
std::string NameOf(const GraphNode& node);

// Every batch passes through all nodes. The largest graph exported by PyTorch so far had 2,000.
constexpr int kMaxNodes = 20'000;
// The graph is part of the plan, which is sent to every process and stored in the catalog.
constexpr size_t kMaxGraphBytes = size_t{64} << 20;
// All dense parameters are pulled, and all their gradients pushed, for every batch.
constexpr int64_t kMaxDenseBytes = int64_t{256} << 20;
// All values of one batch, without gradients: 4 GiB.
constexpr int64_t kMaxElementsTogether = int64_t{1} << 30;

// A checked graph with the memory for one batch. Shapes and constants are computed once per batch
// size. Not thread-safe; one per thread.
class GraphRun {
 public:
  // Refuses a graph that cannot be run: unknown operators or attributes, values that no node
  // computes, cycles, sizes beyond the limits. The graph is not trusted. `kernels` outlives this.
  // `most_dense_bytes`: of the dense parameters together; nullopt: as many as there are.
  static Result<std::unique_ptr<GraphRun>> Make(
      const NetworkGraph& graph, const Kernels& kernels,
      std::optional<int64_t> most_dense_bytes = kMaxDenseBytes);

  const NetworkGraph& graph() const { return graph_; }
  // nullptr: there is no such value, or no node reads it.
  Tensor* Find(const std::string& name);
  Tensor& output() { return tensors_[output_]; }
  // nullptr: the graph leaves the loss to ModelSpec.loss.
  Tensor* loss() { return loss_ ? &tensors_[*loss_] : nullptr; }

  // All values of a batch of the size that was planned last.
  int64_t elements() const { return elements_; }

  // Prepares for batches of that many rows, `with_loss`: of which the loss will be computed, too.
  // Fails if an operator cannot process them.
  Status Plan(int64_t rows, bool with_loss = false);
  // For inputs, after Plan: memory for their elements, valid until the next Plan.
  void Allocate(Tensor* input);

  // The pointers of inputs, parameters and tables must be set. `key` determines which numbers
  // dropout drops.
  void Forward(bool train, uint64_t key);
  // After Forward and before Backward: memory for all gradients except those of parameters and
  // tables.
  void PrepareBackward();
  // Computes the gradients of parameters and tables, whose pointers must be set, from the gradient
  // of the loss if that was planned, else of the output, which must be filled in. Their `written`
  // is set if a gradient reached them.
  void Backward();

 private:
  struct Step {
    explicit Step(const GraphNode& of) : node(&of), attributes(of) {}
    const GraphNode* node;
    Attributes attributes;
    std::unique_ptr<Operator> run;
    OperatorContext context;
    uint64_t number = 0;   // among the graph's nodes; part of dropout's key
    bool learns = false;   // a parameter or table needs its gradient
    bool of_loss = false;  // the output does not depend on it
    bool fixed = false;    // reads only constants: runs once per batch size
    bool done = false;
  };
  GraphRun(const NetworkGraph& graph, const Kernels& kernels);
  Status AddInputs();
  Status AddParameters(std::optional<int64_t> most_bytes);
  Status AddTables();
  Status AddSteps();
  std::vector<bool> CountReaders();
  Status CheckOfLoss(const GraphInput& input, const std::vector<bool>& of_output) const;
  Status CheckReaders(const GraphTable& table) const;
  using TableInputs = std::unordered_set<std::string_view>;  // names
  static bool ReadsByIds(const Step& step, const TableInputs& own);
  Status CheckTables() const;
  Status AddTensor(const std::string& name);
  Status PlanStep(Step* step);
  bool Runs(const Step& step) const { return with_loss_ || !step.of_loss; }
  void JoinRows(const Step& step);
  size_t IndexOf(const Tensor& tensor) const {
    return static_cast<size_t>(&tensor - tensors_.data());
  }

  const NetworkGraph graph_;
  const Kernels& kernels_;
  std::unordered_map<std::string, size_t> names_;
  std::vector<Tensor> tensors_;  // inputs, parameters and tables come first
  size_t given_ = 0;
  size_t output_ = 0;
  std::optional<size_t> loss_;
  std::vector<uint32_t> readers_;   // by tensor
  std::vector<Step> steps_;         // those on which the output depends
  std::vector<const Step*> maker_;  // by tensor; nullptr: it is given

  // For the current batch size.
  int64_t rows_ = -1;
  bool with_loss_ = false;
  int64_t elements_ = 0;
  bool allocated_ = false;
  bool prepared_ = false;
  std::vector<std::vector<float>> numbers_;
  std::vector<std::vector<int64_t>> integers_;
  std::vector<std::vector<float>> gradients_;
};

}  // namespace sluice::models::graph
