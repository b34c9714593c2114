// The world's scheduler: on which node a process finds room.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "tests/simulation/cluster_world.h"

namespace sluice::elastic {
namespace {

constexpr double kLeastCpu = 1e-9;

}  // namespace

std::vector<Capacity> ClusterWorld::Room() const {
  std::vector<Capacity> room;
  for (const ClusterNode& node : state_.nodes) {
    room.push_back(node.capacity);
  }
  for (const ClusterProcess& process : state_.processes) {
    if (process.node != ClusterProcess::kNone) {
      room[static_cast<size_t>(process.node)] -= process.request;
    }
  }
  return room;
}

std::optional<int> ClusterWorld::Emptiest(const std::vector<Capacity>& room,
                                          const ClusterProcess& process) const {
  std::optional<int> best;
  double best_share = -1;
  for (size_t node = 0; node < room.size(); ++node) {
    const double share = room[node].cpu / std::max(kLeastCpu, state_.nodes[node].capacity.cpu);
    if (!state_.nodes[node].cordoned && !state_.nodes[node].suspect &&
        room[node].Fits(process.request) && share > best_share) {
      best = static_cast<int>(node);
      best_share = share;
    }
  }
  return best;
}

// Services first, since their priority is higher; then by age. One that fits nowhere holds up no
// other.
void ClusterWorld::Schedule() {
  if (!changed_) {
    return;
  }
  if (options_.scaling == WorldOptions::Scaling::kGang) {
    ScheduleGangs();
  }
  std::vector<Capacity> room = Room();
  for (const bool services : {true, false}) {
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      const ClusterProcess& process = state_.processes[i];
      const bool service = process.job == ClusterProcess::kNone;
      const bool ours = options_.scaling == WorldOptions::Scaling::kFixed ||
                        (options_.scaling == WorldOptions::Scaling::kAutoscaler &&
                         options_.placing == WorldOptions::Placing::kScheduler);
      if (process.node != ClusterProcess::kNone || process.terminating || service != services ||
          (!service && (!ours || state_.jobs[static_cast<size_t>(process.job)].suspended))) {
        continue;
      }
      if (const std::optional<int> node = Emptiest(room, process)) {
        room[static_cast<size_t>(*node)] -= process.request;
        Put(i, *node);
      }
    }
  }
}

// In the order of arrival: all processes of a job or none.
void ClusterWorld::ScheduleGangs() {
  for (int job = 0; job < static_cast<int>(state_.jobs.size()); ++job) {
    std::vector<Capacity> room = Room();
    std::vector<std::pair<size_t, int>> places;
    bool fits = true;
    for (size_t i = 0; fits && i < state_.processes.size(); ++i) {
      const ClusterProcess& process = state_.processes[i];
      if (process.job != job || process.node != ClusterProcess::kNone) {
        continue;
      }
      const std::optional<int> node = Emptiest(room, process);
      fits = node.has_value();
      if (fits) {
        room[static_cast<size_t>(*node)] -= process.request;
        places.emplace_back(i, *node);
      }
    }
    for (const auto& [process, node] : places) {
      if (fits) {
        Put(process, node);
      }
    }
  }
}

}  // namespace sluice::elastic
