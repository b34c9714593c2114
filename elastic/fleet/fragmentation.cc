#include "elastic/fleet/fragmentation.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace sluice::elastic {
namespace {

constexpr double kStep = 0.05;  // of a processor
// Of larger nodes the part that no combination fills does not matter.
constexpr double kMaxCpu = 1024;
constexpr double kTolerance = 1e-9;
// Sizes with a smaller share of all requests are rare.
constexpr double kRareShare = 0.05;

size_t StepsDown(double cpu) {
  return cpu > 0 ? static_cast<size_t>(cpu / kStep + kTolerance) : 0;
}
size_t StepsUp(double cpu) {
  return static_cast<size_t>(std::ceil(cpu / kStep - kTolerance));
}

}  // namespace

Fragmentation::Fragmentation(const ClusterState& state) {
  double largest = 0, asked = 0;
  for (const ClusterNode& node : state.nodes) {
    largest = std::max(largest, node.capacity.cpu);
  }
  std::map<double, double> by_size;
  for (const ClusterProcess& process : state.processes) {
    if (process.job != ClusterProcess::kNone && !process.terminating) {
      by_size[process.request.cpu] += process.request.cpu;
      asked += process.request.cpu;
    }
  }
  std::erase_if(by_size, [asked](const auto& size) { return size.second < kRareShare * asked; });
  for (const ClusterJob& job : state.jobs) {
    by_size[job.worker.cpu] += job.worker.cpu;
  }
  usable_.assign(StepsDown(std::min(largest, kMaxCpu)) + 1, 0);
  for (size_t free = 1; free < usable_.size(); ++free) {
    usable_[free] = usable_[free - 1];
    for (const auto& [cpu, total] : by_size) {
      const size_t steps = StepsUp(cpu);
      if (steps > 0 && steps <= free) {
        usable_[free] = std::max(usable_[free], usable_[free - steps] + cpu);
      }
    }
  }
}

double Fragmentation::Lost(double free_cpu) const {
  if (free_cpu >= kMaxCpu) {
    return 0;
  }
  const size_t steps = std::min(StepsDown(free_cpu), usable_.size() - 1);
  return std::max(0.0, free_cpu - usable_[steps]);
}

}  // namespace sluice::elastic
