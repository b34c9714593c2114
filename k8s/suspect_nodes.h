#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"

namespace sluice::k8s {

// Nodes that do not answer any more, as far as one job can see: the API server says so 40 s later
// by default, and the scheduler sends new pods there until then. Suspicions are forgotten after a
// minute. Pure.
class SuspectNodes {
 public:
  void Add(const std::string& node, TimePoint now);
  bool Has(const std::string& node, TimePoint now) const;
  std::vector<std::string> Names(TimePoint now) const;

  // How long the kubelet of `node` may say nothing of a pod that was placed there: a busy one takes
  // its time, a suspect one has none.
  double PatienceSeconds(const std::string& node, TimePoint now) const;

 private:
  std::map<std::string, TimePoint> since_;
};

}  // namespace sluice::k8s
