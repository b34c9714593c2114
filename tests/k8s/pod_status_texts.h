#pragma once

#include <string>

namespace sluice::k8s {

// What the scheduler and a kubelet write into the status of a pod with one container, ours: merge
// patches of its subresource `status`.

// No node has room; `why`: in the scheduler's words.
std::string UnschedulableStatus(const std::string& why);
// Its container runs; `address`: the pod's.
std::string RunningStatus(const std::string& address);
// Its container has ended; unless with 0, the end of its output is the termination message, as for
// FallbackToLogsOnError.
std::string EndedStatus(int exit_code, const std::string& output);

}  // namespace sluice::k8s
