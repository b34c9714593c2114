#include "k8s/pod_request.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sluice::k8s {
namespace {

constexpr char kMemory[] = "memory";

bool IsExtended(const std::string& resource) {
  return resource.find('/') != std::string::npos;
}

}  // namespace

const RoleRequest& PodRequest::Of(elastic::Role role) const {
  static const RoleRequest none;
  const auto found = roles.find(role);
  return found == roles.end() ? none : found->second;
}

PodResources ResourcesOf(const RoleRequest& asked, const elastic::Resources& given) {
  PodResources resources = asked.resources;
  const auto cpu = Quantity::OfMillis(static_cast<int64_t>(std::ceil(given.cpu * 1000)));
  resources.requests.emplace("cpu", cpu);
  const bool said = given.memory_bytes > 0 || resources.requests.contains(kMemory) ||
                    resources.limits.contains(kMemory);
  if (!said && asked.estimate.request > 0) {
    resources.requests.emplace(kMemory, Quantity::OfBytes(asked.estimate.request));
    resources.limits.emplace(kMemory, Quantity::OfBytes(asked.estimate.limit));
  }
  for (auto* const part : {&resources.requests, &resources.limits}) {
    const auto memory = part->find(kMemory);
    if (memory != part->end() && given.memory_factor > 1) {
      memory->second = Quantity::OfBytes(
          static_cast<int64_t>(std::ceil(memory->second.AsDouble() * given.memory_factor)));
    }
  }
  if (given.memory_bytes > 0) {
    const Quantity memory = Quantity::OfBytes(given.memory_bytes);
    Quantity& request = resources.requests.emplace(kMemory, memory).first->second;
    request = std::max(request, memory);
  }
  // Kubernetes refuses a pod whose request exceeds its limit, or, for an extended resource, differs
  // from it.
  for (auto& [name, limit] : resources.limits) {
    const auto request = resources.requests.find(name);
    if (request != resources.requests.end()) {
      limit = std::max(limit, request->second);
    } else if (IsExtended(name)) {
      resources.requests[name] = limit;
    }
  }
  for (const auto& [name, request] : resources.requests) {
    if (name == kMemory || IsExtended(name)) {
      resources.limits.emplace(name, request);
    }
  }
  return resources;
}

std::string_view PriorityClassOf(const RoleRequest& request, uint64_t index) {
  if (!request.priority.given) {
    return {};
  }
  const uint64_t pods = std::max<uint64_t>(request.pods, 1);
  // A share such as 0.3 of 10 is 3.0000000000000004 in binary, and means three.
  const double share = std::ceil(request.priority.high_share * static_cast<double>(pods) - 1e-9);
  const auto high = static_cast<uint64_t>(std::clamp(share, 0.0, static_cast<double>(pods)));
  const uint64_t at_the_end = high / 2;
  const uint64_t place = index % pods;
  const bool is_high = place < high - at_the_end || place >= pods - at_the_end;
  return is_high ? kHighPriorityClass : kLowPriorityClass;
}

}  // namespace sluice::k8s
