#include "k8s/suspect_nodes.h"

namespace sluice::k8s {
namespace {

constexpr double kSuspectSeconds = 60;
constexpr double kShortPatience = 3, kLongPatience = 60;

}  // namespace

void SuspectNodes::Add(const std::string& node, TimePoint now) {
  if (!node.empty()) {
    since_[node] = now;
  }
}

bool SuspectNodes::Has(const std::string& node, TimePoint now) const {
  const auto found = since_.find(node);
  return found != since_.end() && SecondsBetween(found->second, now) < kSuspectSeconds;
}

std::vector<std::string> SuspectNodes::Names(TimePoint now) const {
  std::vector<std::string> names;
  for (const auto& [node, since] : since_) {
    if (Has(node, now)) {
      names.push_back(node);
    }
  }
  return names;
}

double SuspectNodes::PatienceSeconds(const std::string& node, TimePoint now) const {
  return Has(node, now) ? kShortPatience : kLongPatience;
}

}  // namespace sluice::k8s
