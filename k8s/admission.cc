#include "k8s/admission.h"

#include <algorithm>
#include <map>
#include <string>

#include "k8s/quantity/quantity.h"

namespace sluice::k8s {
namespace {

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool IsOfOnePod(std::string_view resource) {
  return resource.ends_with("memory") || resource.ends_with("cpu");
}

// "requested: limits.memory=4Gi,pods=1, used: ...": the amounts behind `what`.
std::map<std::string, Quantity> AmountsIn(std::string_view message, std::string_view what) {
  std::map<std::string, Quantity> amounts;
  const size_t begin = message.find(what);
  if (begin == std::string_view::npos) {
    return amounts;
  }
  std::string_view list = message.substr(begin + what.size());
  list = list.substr(0, list.find(", "));
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    const size_t equals = one.find('=');
    if (equals == std::string_view::npos) {
      continue;
    }
    if (const Result<Quantity> amount = ParseQuantity(one.substr(equals + 1)); amount.ok()) {
      amounts.emplace(one.substr(0, equals), *amount);
    }
  }
  return amounts;
}

}  // namespace

bool NeverFits(std::string_view message) {
  if (!Has(message, "exceeded quota")) {
    return false;
  }
  const std::map<std::string, Quantity> limited = AmountsIn(message, "limited: ");
  for (const auto& [resource, amount] : AmountsIn(message, "requested: ")) {
    const auto limit = limited.find(resource);
    if (IsOfOnePod(resource) && limit != limited.end() && limit->second.AsDouble() > 0 &&
        limit->second < amount) {
      return true;
    }
  }
  return false;
}

std::string_view AdmissionHint(std::string_view message) {
  if (Has(message, "must specify")) {
    return "engine.worker_resource_limit, engine.ps_resource_limit and "
           "engine.master_resource_limit "
           "give the pods what the quota wants; or a LimitRange gives each pod of the namespace "
           "defaults";
  }
  if (Has(message, "exceeded quota") && Has(message, "count/trainingjobs")) {
    return "a TrainingJob counts until it is deleted: `kubectl delete tj`, or its "
           "ttlSecondsAfterFinished";
  }
  if (NeverFits(message) || Has(message, " usage per ")) {
    return "less for each pod: engine.memory and engine.cpu (workers and servers), "
           "engine.master_resource_request; or a larger ResourceQuota or LimitRange";
  }
  return "";
}

}  // namespace sluice::k8s
