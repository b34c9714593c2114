#pragma once

#include <string_view>

// What an API server's refusal of a pod means. Pure.
namespace sluice::k8s {

// Whether a ResourceQuota that refuses a pod with this message can never have room for it: the pod
// requests more processors or memory than the quota has in all. A quota of nothing does not count:
// it pauses a namespace.
bool NeverFits(std::string_view message);

// What helps against such a refusal, by a ResourceQuota or a LimitRange; "": nothing is known.
std::string_view AdmissionHint(std::string_view message);

}  // namespace sluice::k8s
