#include "tests/k8s/local_scheduler.h"

#include <fmt/core.h>

#include "k8s/json_internal.h"
#include "k8s/quantity/quantity.h"

namespace sluice::k8s {
namespace {

double CpuOf(const Object& pod) {
  const rapidjson::Document json = ParseJsonObject(pod.json, "a pod").value();
  double cpu = 0;
  for (const rapidjson::Value& container : ArrayIn(json, {"spec", "containers"})) {
    const auto asked = ParseQuantity(TextIn(container, {"resources", "requests", "cpu"}));
    cpu += asked.ok() ? asked->AsDouble() : 0;
  }
  return cpu;
}

}  // namespace

double LocalScheduler::Left(const std::string& node) const {
  const auto occupied = occupied_.find(node);
  double left = node_cpu_ - (occupied == occupied_.end() ? 0 : occupied->second);
  for (const auto& [uid, taken] : places_) {
    left -= taken.node == node ? taken.cpu : 0;
  }
  return left;
}

void LocalScheduler::Occupy(const std::string& node, double cpu) {
  const std::lock_guard lock(mutex_);
  occupied_[node] += cpu;
}

void LocalScheduler::Free(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  places_.erase(uid);
}

std::optional<std::string> LocalScheduler::Place(const Object& pod) {
  constexpr double kRounding = 1e-9;
  const double cpu = CpuOf(pod);
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < nodes_; ++i) {
    const std::string node = fmt::format("node-{}", (placed_ + i) % nodes_ + 1);
    if (node_cpu_ <= 0 || Left(node) + kRounding >= cpu) {
      ++placed_;
      places_[pod.uid] = {node, cpu};
      return node;
    }
  }
  return std::nullopt;
}

std::string LocalScheduler::Refusal() const {
  return fmt::format("0/{0} nodes are available: {0} Insufficient cpu.", nodes_);
}

}  // namespace sluice::k8s
