#include "k8s/pod_request.h"

#include <algorithm>
#include <cmath>

namespace sluice::k8s {

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
