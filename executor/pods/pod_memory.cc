#include "executor/pods/pod_memory.h"

#include <algorithm>

#include "executor/pods/requested_pods.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
// What a control group counts beside a process: pages of files, of the program first of all.
constexpr int64_t kFilesBytes = 32 * kMebibyte;
// Estimates are within a third of what was measured (tests/process/memory_estimate_test.cc).
constexpr int64_t kQuarters = 5;  // of the estimate are requested
// Rows that a worker keeps for later epochs at most (elastic/worker/shard_rows.cc): where others
// are lost, it keeps more than its share.
constexpr int64_t kMostKept = 256 * kMebibyte;
// A master without a model: the program, the threads of its services, the journal.
constexpr int64_t kMasterBytes = 64 * kMebibyte;

int64_t WholeMebibytes(int64_t bytes) {
  return (bytes + kMebibyte - 1) / kMebibyte * kMebibyte;
}

}  // namespace

k8s::PodMemory WithRoom(int64_t bytes) {
  if (bytes <= 0) {
    return {};
  }
  const int64_t request = WholeMebibytes(bytes / 4 * kQuarters + kFilesBytes);
  return {request, 2 * request};
}

int64_t MemoryOfMaster(const plan::TrainPlan& plan) {
  const plan::Strategy& strategy = plan.strategy();
  // It holds the whole model while it writes a version.
  const int64_t all =
      strategy.kind() == plan::Strategy::ALL_REDUCE
          ? plan.estimated_memory_bytes() - plan.estimated_kept_bytes()
          : plan.estimated_server_memory_bytes() * ServersOf(strategy) / (1 + strategy.replicas());
  return all > 0 ? kMasterBytes + all : 0;
}

k8s::PodMemory MemoryOf(elastic::Role role, const plan::TrainPlan& plan) {
  switch (role) {
    case elastic::Role::kMaster:
      return WithRoom(MemoryOfMaster(plan));
    case elastic::Role::kWorker: {
      k8s::PodMemory memory = WithRoom(plan.estimated_memory_bytes());
      memory.limit += plan.estimated_kept_bytes() > 0 ? kMostKept : 0;
      return memory;
    }
    case elastic::Role::kParameterServer:
      break;
  }
  k8s::PodMemory memory = WithRoom(plan.estimated_server_memory_bytes());
  memory.limit = std::max(memory.limit, memory.request * ServersOf(plan.strategy()));
  return memory;
}

}  // namespace sluice::executor
