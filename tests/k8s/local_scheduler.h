#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "k8s/object.h"

namespace sluice::k8s {

// Places LocalKubelet's pods: on nodes of equal size, each of which takes pods while it has
// processors left. Thread-safe.
class LocalScheduler {
 public:
  // `node_cpu`: of each node; 0: unlimited.
  LocalScheduler(int nodes, double node_cpu) : nodes_(nodes), node_cpu_(node_cpu) {}

  // Processors of a node used by something other than our pods.
  void Occupy(const std::string& node, double cpu);
  // Assigns a node to the pod; nullopt: none has room.
  std::optional<std::string> Place(const Object& pod);
  void Free(const std::string& uid);
  // "0/2 nodes are available: 2 Insufficient cpu."
  std::string Refusal() const;

 private:
  struct Taken {
    std::string node;
    double cpu = 0;
  };
  double Left(const std::string& node) const;  // call with the lock held

  const int nodes_;
  const double node_cpu_;
  std::mutex mutex_;
  int placed_ = 0;
  std::map<std::string, double> occupied_;
  std::map<std::string, Taken> places_;  // by the pod's uid
};

}  // namespace sluice::k8s
