#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "elastic/fleet/autoscaler.h"
#include "elastic/fleet/fragmentation.h"

namespace sluice::elastic {

// One way to distribute the cluster, worker by worker: Autoscale makes one that all jobs would
// like, and one without the jobs that have not waited long enough. Pure; its state and options
// outlive it.
class SharingPlan {
 public:
  // `limits`: each job's largest number of workers in this plan.
  SharingPlan(const ClusterState& state, const AutoscalerOptions& options,
              std::vector<uint32_t> limits);

  void Make();
  // Instead of Make: whether that job would get its smallest number. The plan is made only as far
  // as that depends on it.
  bool GivesMinimum(size_t job);

  const std::vector<uint32_t>& counts() const { return counts_; }  // workers, by job
  bool kept(size_t process) const { return kept_[process]; }
  const std::vector<std::vector<int>>& starts() const { return starts_; }  // nodes, by job
  // Waiting processes and their nodes.
  const std::vector<std::pair<size_t, int>>& puts() const { return puts_; }
  const Capacity& Request(size_t job) const { return requests_[job]; }  // of its next worker

 private:
  static size_t Node(const ClusterProcess& process) { return static_cast<size_t>(process.node); }
  std::tuple<bool, double, TimePoint> Loss(size_t process) const;
  bool Waits(size_t process, int job) const;
  std::vector<size_t> ByPriority() const;
  bool Admits(size_t node, const AllowedNodes& allowed) const;
  bool Crowded(size_t node) const;
  Capacity RoomFor(size_t node, std::optional<int> priority) const;
  static bool GivesWay(const ClusterProcess& worker, std::optional<int> priority);
  std::optional<int> BestFree(const Capacity& request, const AllowedNodes& allowed) const;
  std::optional<int> Place(const Capacity& request, const AllowedNodes& allowed,
                           std::optional<int> priority = std::nullopt);
  bool PutWaiting(size_t process);
  void PutServices();
  std::optional<size_t> Keepable(size_t job);
  bool GiveWorker(size_t job);
  bool MayHaveRoom(size_t job) const;
  void GiveMinimum(size_t job);
  bool TryMinimum(size_t job, bool with_waiting);
  double Gain(size_t index);
  bool BeforeAtEqualGain(size_t a, size_t b) const;
  void FillUp();

  const ClusterState& state_;
  const AutoscalerOptions& options_;
  const Fragmentation fragmentation_;
  std::vector<uint32_t> limits_;
  std::vector<Capacity> requests_;  // by job
  // Capacity left by foreground, servers and the workers placed so far: of each node with and
  // without the workers that run there and may lose their place, and of the whole cluster.
  std::vector<Capacity> room_, free_;
  Capacity budget_;
  std::vector<std::vector<size_t>> running_;  // by job, largest loss first
  // By job, not counting crowded nodes and counting them: those of running_ before this have been
  // kept, or have lost their place; room only shrinks.
  std::vector<std::array<size_t, 2>> next_running_;
  std::vector<size_t> losable_;  // smallest loss first
  std::vector<bool> kept_;       // by process
  std::vector<uint32_t> counts_;
  std::vector<std::vector<int>> starts_;
  std::vector<std::vector<size_t>> workers_on_;  // by node
  std::vector<std::pair<size_t, int>> puts_;
};

}  // namespace sluice::elastic
