#include "k8s/cluster_objects.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "k8s/json_internal.h"
#include "k8s/pod_labels.h"
#include "k8s/quantity/quantity.h"
#include "k8s/rfc3339.h"

namespace sluice::k8s {
namespace {

using rapidjson::Value;

constexpr std::string_view kGpu = "nvidia.com/gpu";
// No sensible amount is larger; sums of such amounts stay exact enough.
constexpr double kMaxAmount = 1e15;

double AmountOf(const Value& value) {
  if (value.IsNumber()) {
    return std::clamp(value.GetDouble(), 0.0, kMaxAmount);
  }
  const Result<Quantity> quantity = ParseQuantity(TextIn(value, {}));
  return quantity.ok() ? std::clamp(quantity->AsDouble(), 0.0, kMaxAmount) : 0;
}

void Add(std::string_view name, double amount, Amounts& to) {
  if (name == "cpu") {
    to.known.cpu += amount;
  } else if (name == "memory") {
    to.known.memory_bytes += static_cast<int64_t>(amount);
  } else if (name == kGpu) {
    to.known.gpu += amount;
  } else if (name == "pods") {
    to.known.processes += amount;
  } else if (name != "ephemeral-storage") {
    to.further[std::string(name)] += amount;
  }
}

Amounts ReadAmounts(const Value* amounts) {
  Amounts read;
  if (amounts != nullptr && amounts->IsObject()) {
    for (const auto& member : amounts->GetObject()) {
      Add(TextIn(member.name, {}), AmountOf(member.value), read);
    }
  }
  return read;
}

void AddAll(const Amounts& more, Amounts& to) {
  to.known += more.known;
  for (const auto& [name, amount] : more.further) {
    to.further[name] += amount;
  }
}

Amounts LargerOf(Amounts one, const Amounts& other) {
  one.known.cpu = std::max(one.known.cpu, other.known.cpu);
  one.known.memory_bytes = std::max(one.known.memory_bytes, other.known.memory_bytes);
  one.known.gpu = std::max(one.known.gpu, other.known.gpu);
  for (const auto& [name, amount] : other.further) {
    double& largest = one.further[name];
    largest = std::max(largest, amount);
  }
  return one;
}

// As the scheduler counts: init containers run one after the other, each beside the sidecars
// (init containers that are restarted always) before it; the others all at once.
Amounts RequestOf(const Value& pod) {
  Amounts together;
  for (const Value& container : ArrayIn(pod, {"spec", "containers"})) {
    AddAll(ReadAmounts(FindIn(container, {"resources", "requests"})), together);
  }
  Amounts sidecars;
  Amounts largest;
  for (const Value& container : ArrayIn(pod, {"spec", "initContainers"})) {
    Amounts own = ReadAmounts(FindIn(container, {"resources", "requests"}));
    AddAll(sidecars, own);
    largest = LargerOf(std::move(largest), own);
    if (TextIn(container, {"restartPolicy"}) == "Always") {
      sidecars = std::move(own);
    }
  }
  AddAll(sidecars, together);
  Amounts all = LargerOf(std::move(together), largest);
  AddAll(ReadAmounts(FindIn(pod, {"spec", "overhead"})), all);
  all.known.processes = 1;
  return all;
}

bool HasCondition(const Value& object, std::string_view type, std::string_view status,
                  std::string_view reason = {}) {
  for (const Value& each : ArrayIn(object, {"status", "conditions"})) {
    if (TextIn(each, {"type"}) == type && TextIn(each, {"status"}) == status &&
        (reason.empty() || TextIn(each, {"reason"}) == reason)) {
      return true;
    }
  }
  return false;
}

int PriorityOf(const Value& pod) {
  if (FindIn(pod, {"spec", "priority"}) == nullptr) {
    const std::string_view name = TextIn(pod, {"spec", "priorityClassName"});
    return name == kHighPriorityClass  ? kHighPriority
           : name == kLowPriorityClass ? kLowPriority
                                       : 0;
  }
  return static_cast<int>(std::clamp<int64_t>(NumberIn(pod, {"spec", "priority"}),
                                              std::numeric_limits<int>::min(),
                                              std::numeric_limits<int>::max()));
}

TimePoint CreationOf(const Value& object) {
  const std::optional<int64_t> micros =
      MicrosOf(std::string(TextIn(object, {"metadata", "creationTimestamp"})));
  return std::chrono::duration_cast<TimePoint>(std::chrono::microseconds(micros.value_or(0)));
}

std::optional<double> ShareIn(const Value& quota) {
  constexpr double kMostShare = 1e6;
  const std::string_view text = TextIn(quota, {"metadata", "annotations", kShareAnnotation});
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  const bool right = !text.empty() && error == std::errc() && end == text.data() + text.size() &&
                     share > 0 && share <= kMostShare;
  return right ? std::optional(share) : std::nullopt;
}

}  // namespace

int PriorityOf(int pod_priority, int job_priority) {
  constexpr int kMaxPodPriority = 1'000'000;
  constexpr int kMaxJobPriority = 499;
  return std::clamp(pod_priority, -kMaxPodPriority, kMaxPodPriority) * (2 * kMaxJobPriority + 2) +
         std::clamp(job_priority, -kMaxJobPriority, kMaxJobPriority);
}

TimePoint CreationTimeOf(std::string_view json) {
  const Result<rapidjson::Document> object = ParseJsonObject(json, "an object");
  return object.ok() ? CreationOf(*object) : TimePoint();
}

Result<NodeFacts> ReadNode(const Object& object) {
  ASSIGN_OR_RETURN(const rapidjson::Document node, ParseJsonObject(object.json, "a node"));
  NodeFacts facts;
  facts.labels.name = object.name;
  facts.labels.labels = object.labels;
  for (const Value& taint : ArrayIn(node, {"spec", "taints"})) {
    facts.labels.taints.push_back({std::string(TextIn(taint, {"key"})),
                                   std::string(TextIn(taint, {"value"})),
                                   std::string(TextIn(taint, {"effect"}))});
  }
  facts.allocatable = ReadAmounts(FindIn(node, {"status", "allocatable"}));
  facts.cordoned = TrueIn(node, {"spec", "unschedulable"}) || object.leaving;
  facts.ready = !HasCondition(node, "Ready", "False") && !HasCondition(node, "Ready", "Unknown");
  return facts;
}

Result<PodFacts> ReadPod(const Object& object) {
  ASSIGN_OR_RETURN(const rapidjson::Document pod, ParseJsonObject(object.json, "a pod"));
  PodFacts facts;
  facts.namespace_name = object.namespace_name;
  facts.name = object.name;
  if (const std::optional<PodIdentity> identity = IdentityOf(object.labels)) {
    facts.job_uid = identity->job_uid;
    facts.role = identity->role;
  }
  facts.node = TextIn(pod, {"spec", "nodeName"});
  facts.request = RequestOf(pod);
  ASSIGN_OR_RETURN(facts.rules, NodeRules::Of(object.json));
  facts.priority = PriorityOf(pod);
  const std::string_view phase = TextIn(pod, {"status", "phase"});
  facts.over = phase == "Succeeded" || phase == "Failed";
  facts.terminating = object.leaving;
  facts.unschedulable =
      facts.node.empty() && HasCondition(pod, "PodScheduled", "False", "Unschedulable");
  facts.created = CreationOf(pod);
  return facts;
}

Result<QuotaFacts> ReadQuota(const Object& object) {
  ASSIGN_OR_RETURN(const rapidjson::Document quota, ParseJsonObject(object.json, "a quota"));
  QuotaFacts facts;
  facts.namespace_name = object.namespace_name;
  facts.share = ShareIn(quota);
  const Value* hard = FindIn(quota, {"status", "hard"});
  if (hard == nullptr || !hard->IsObject() || ArrayIn(quota, {"spec", "scopes"}).Size() > 0 ||
      FindIn(quota, {"spec", "scopeSelector"}) != nullptr) {
    return facts;
  }
  constexpr std::string_view kRequests = "requests.";
  for (const auto& limit : hard->GetObject()) {
    std::string_view name = TextIn(limit.name, {});
    const Value* used = FindIn(quota, {"status", "used", name});
    const double left = AmountOf(limit.value) - (used == nullptr ? 0 : AmountOf(*used));
    if (name.starts_with(kRequests)) {
      name.remove_prefix(kRequests.size());
    } else if (name == "count/pods") {
      name = "pods";
    } else if (name != "cpu" && name != "memory" && name != "pods") {
      continue;  // limits.cpu, services, ...
    }
    const auto [at, first] = facts.left.emplace(name, left);
    at->second = first ? left : std::min(at->second, left);
  }
  return facts;
}

std::map<std::string, double> ByName(const Amounts& request) {
  std::map<std::string, double> all = request.further;
  all["cpu"] = request.known.cpu;
  all["memory"] = static_cast<double>(request.known.memory_bytes);
  all[std::string(kGpu)] = request.known.gpu;
  all["pods"] = request.known.processes;
  return all;
}

}  // namespace sluice::k8s
