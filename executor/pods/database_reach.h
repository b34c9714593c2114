#pragma once

#include <string>

#include "base/status.h"

namespace sluice::executor {

// FailedPrecondition, with a hint: pods cannot read the database at this URL, because it is a file
// of this machine, or its host means another machine inside a pod.
Status CheckReachableFromPods(const std::string& url);

}  // namespace sluice::executor
