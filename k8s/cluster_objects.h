#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/fleet/autoscaler.h"
#include "elastic/fleet/fleet.h"
#include "k8s/node_rules.h"
#include "k8s/object.h"

namespace sluice::k8s {

inline constexpr Resource kNodes{"", "v1", "nodes"};
// Of a ResourceQuota: a positive number, as in 2 or 0.5. A namespace without one has 1.
inline constexpr std::string_view kShareAnnotation = "sluice.dev/share";
inline constexpr Resource kQuotas{"", "v1", "resourcequotas"};

// Values of the classes that `sluice k8s manifests` makes.
inline constexpr int kHighPriority = -100;
inline constexpr int kLowPriority = -1000;
// One order of PriorityClass and `engine.priority`: the class counts first.
int PriorityOf(int pod_priority, int job_priority);

// Amounts of resources: those that the autoscaler knows, and further ones by their names. What
// cannot be read, or is negative, counts as 0.
struct Amounts {
  elastic::Capacity known;
  std::map<std::string, double> further;  // "example.com/fpga"
};

// What the controller reads in a Node. Pure, like the following ones; an error if the text is not
// an object.
struct NodeFacts {
  NodeLabels labels;
  Amounts allocatable;
  bool cordoned = false;
  bool ready = true;
};
Result<NodeFacts> ReadNode(const Object& node);

struct PodFacts {
  std::string namespace_name, name;
  std::string job_uid;  // empty: not a pod of a training
  elastic::Role role = elastic::Role::kWorker;
  std::string node;  // empty: it has none yet
  Amounts request;   // containers, init containers, sidecars and overhead
  NodeRules rules;
  int priority = 0;   // before the API server has looked its class up: that of one of our classes
  bool over = false;  // holds nothing any more
  bool terminating = false;
  bool unschedulable = false;  // the scheduler has looked for a node and found none
  TimePoint created{};         // since 1970, by the API server's clock
};
Result<PodFacts> ReadPod(const Object& pod);

// What a ResourceQuota still allows; resources that it does not limit are absent.
struct QuotaFacts {
  std::string namespace_name;
  std::map<std::string, double> left;  // by name, as in a pod's requests: "cpu", "memory", "pods"
  std::optional<double> share;         // kShareAnnotation, of a namespace's part beside others'
};
// A quota for some pods only (by scopes) counts as without limits. A share that is no positive
// number up to 1,000,000 counts as none.
Result<QuotaFacts> ReadQuota(const Object& quota);

// How much of each resource a pod needs, by name; "pods" is 1.
std::map<std::string, double> ByName(const Amounts& request);

TimePoint CreationTimeOf(std::string_view json);

}  // namespace sluice::k8s
