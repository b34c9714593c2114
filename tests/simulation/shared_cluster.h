#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "elastic/fleet/cluster_state.h"

namespace sluice::elastic {

struct WorldJob {
  std::string name;
  uint32_t min = 1, max = 1;
  int priority = 0;
  Capacity worker;
  Capacity master;  // none if it requests nothing
  Capacity server;
  uint32_t servers = 0;
  bool can_suspend = false;  // it writes checkpoints
  // Seconds of one worker; it trains while master and servers run.
  double work = std::numeric_limits<double>::infinity();
  // Part of the work that more workers do not speed up: n of them do n / (1 + serial (n - 1)).
  double serial = 0;
};

// What an experiment does with a cluster, and sees of it: simulated on virtual time, or beside a
// real scheduler.
class SharedCluster {
 public:
  struct Fate {
    double arrived = 0;
    std::optional<double> first_worker, ended;
    double done = 0;  // of its work
  };

  virtual ~SharedCluster() = default;

  virtual void AddNode(const std::string& name, const Capacity& capacity) = 0;
  virtual size_t AddJob(WorldJob job) = 0;  // arrives now; returns its number
  // A service of this name consists of so many processes from now on.
  virtual void SetService(const std::string& name, const Capacity& process, uint32_t count,
                          std::optional<int> priority) = 0;
  virtual void RunUntil(double seconds) = 0;

  virtual double now() const = 0;
  virtual size_t jobs() const = 0;
  virtual const std::vector<Fate>& fates() const = 0;
  // Running now.
  virtual uint32_t Workers(size_t job) const = 0;
  virtual uint32_t ServiceRunning(const std::string& name) const = 0;
  virtual double UsedCpu() const = 0;  // requested by running processes
  virtual double TotalCpu() const = 0;
  virtual uint64_t starts() const = 0;  // of workers, so far
};

// (sum x)^2 / (n sum x^2): 1 if all are equal (Jain, Chiu and Hawe 1984).
double JainOf(const std::vector<double>& shares);

}  // namespace sluice::elastic
