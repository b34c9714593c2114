#include <algorithm>
#include <cmath>

#include "tests/simulation/cluster_world.h"

// What is seen of a cluster from outside.
namespace sluice::elastic {
namespace {

constexpr double kUnequal = 1e-9;

}  // namespace

double JainOf(const std::vector<double>& shares) {
  double sum = 0, squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 1;
}

uint32_t ClusterWorld::ServiceRunning(const std::string& name) const {
  uint32_t running = 0;
  for (size_t i = 0; i < state_.processes.size(); ++i) {
    running += lives_[i].service == name && !state_.processes[i].terminating && Running(i) ? 1 : 0;
  }
  return running;
}

double ClusterWorld::UsedCpu() const {
  double used = 0;
  for (size_t i = 0; i < state_.processes.size(); ++i) {
    used += Running(i) ? state_.processes[i].request.cpu : 0;
  }
  return used;
}

double ClusterWorld::UsedByWorkers() const {
  double used = 0;
  for (size_t i = 0; i < state_.processes.size(); ++i) {
    used += state_.processes[i].worker && Running(i) ? state_.processes[i].request.cpu : 0;
  }
  return used;
}

double ClusterWorld::TotalCpu() const {
  double total = 0;
  for (const ClusterNode& node : state_.nodes) {
    total += node.capacity.cpu;
  }
  return total;
}

double ClusterWorld::PackableCpu(double worker_cpu) const {
  std::vector<double> room;
  for (const ClusterNode& node : state_.nodes) {
    room.push_back(node.suspect || node.cordoned ? 0 : node.capacity.cpu);
  }
  for (const ClusterProcess& process : state_.processes) {
    if (process.node != ClusterProcess::kNone && !process.worker) {
      room[static_cast<size_t>(process.node)] -= process.request.cpu;
    }
  }
  double packable = 0;
  for (const double cpu : room) {
    packable += std::floor(std::max(0.0, cpu) / worker_cpu + kUnequal) * worker_cpu;
  }
  return packable;
}

std::string ClusterWorld::Broken() const {
  const std::vector<Capacity> room = Room();
  for (size_t node = 0; node < room.size(); ++node) {
    if (room[node].cpu < -kUnequal || room[node].memory_bytes < 0) {
      return state_.nodes[node].name + " holds more than it has";
    }
  }
  std::vector<uint32_t> counts(state_.jobs.size(), 0);
  for (const ClusterProcess& process : state_.processes) {
    if (process.worker && !process.terminating &&
        ++counts[static_cast<size_t>(process.job)] >
            state_.jobs[static_cast<size_t>(process.job)].max) {
      return state_.jobs[static_cast<size_t>(process.job)].name +
             " has more than its largest number";
    }
    if (process.job != ClusterProcess::kNone && process.node != ClusterProcess::kNone &&
        !process.terminating && state_.jobs[static_cast<size_t>(process.job)].suspended) {
      return state_.jobs[static_cast<size_t>(process.job)].name + " is suspended and runs";
    }
  }
  return "";
}

}  // namespace sluice::elastic
