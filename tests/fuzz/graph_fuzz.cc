#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "models/graph/graph_run_internal.h"
#include "models/graph/graph_tables.h"
#include "models/model.pb.h"
#include "tests/fuzz/target.h"

// An untrusted graph of operators: what Make and Plan accept can be run, forwards and backwards.
namespace sluice::models::graph {
namespace {

constexpr int64_t kRows = 2;
constexpr int64_t kMaxElementsHere = 1 << 14;  // so that one input takes milliseconds

bool IsSmall(const NetworkGraph& graph) {
  int64_t elements = 0;
  for (const GraphParameter& parameter : graph.parameters()) {
    int64_t own = 1;
    for (const int64_t extent : parameter.shape()) {
      own = std::clamp<int64_t>(own * std::clamp<int64_t>(extent, 0, kMaxElementsHere), 0,
                                kMaxElementsHere);
    }
    elements += own;
  }
  return elements < kMaxElementsHere;
}

struct Memory {
  std::vector<std::vector<float>> numbers;
  std::vector<uint32_t> positions = std::vector<uint32_t>(kMaxElementsHere, 0);
  std::vector<uint32_t> ends = {2, 3};
  std::deque<TableReads> tables;
  RowUse bag;
  float* Of(size_t n) { return numbers.emplace_back(std::max<size_t>(n, 1), 0.5F).data(); }
};

void Place(GraphRun* run, Memory* memory) {
  memory->bag = {std::span(memory->positions).first(3), memory->ends, {}};
  for (const GraphInput& input : run->graph().inputs()) {
    if (Tensor* tensor = run->Find(input.name())) {
      run->Allocate(tensor);
      tensor->use = tensor->type == ElementType::kBag ? &memory->bag : nullptr;
    }
  }
  for (const GraphParameter& parameter : run->graph().parameters()) {
    if (Tensor* tensor = run->Find(parameter.name())) {
      tensor->numbers = memory->Of(tensor->count());
      tensor->gradient = memory->Of(tensor->count());
    }
  }
  for (const GraphTable& table : run->graph().tables()) {
    if (Tensor* tensor = run->Find(ValueOf(table))) {  // the batch uses one of its rows
      tensor->numbers = memory->Of(table.dimension());
      tensor->gradient = memory->Of(table.dimension());
      tensor->gradient_count = table.dimension();
      TableReads& reads = memory->tables.emplace_back();
      for (const std::string& name : table.inputs()) {
        reads.inputs.push_back(run->Find(name));
        reads.uses.push_back({memory->positions, {}, {}});
      }
      tensor->reads = &reads;
    }
  }
}

void Run(const std::string& input) {
  NetworkGraph graph;
  if (!graph.ParseFromString(input) || !IsSmall(graph)) {
    return;
  }
  static_cast<void>(MakeTables(&graph));
  Result<std::unique_ptr<GraphRun>> made = GraphRun::Make(graph, ActiveKernels());
  if (!made.ok() || !made.value()->Plan(kRows).ok() ||
      made.value()->elements() > kMaxElementsHere) {
    return;
  }
  GraphRun& run = *made.value();
  Memory memory;
  Place(&run, &memory);
  run.Forward(true, 1);
  run.PrepareBackward();
  if (float* gradient = run.output().gradient) {
    std::fill_n(gradient, run.output().count(), 1.0F);
    run.Backward();
  }
  run.Forward(false, 0);
}

}  // namespace
}  // namespace sluice::models::graph

FUZZ_TARGET(graph) {
  sluice::models::graph::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
