#pragma once

#include <vector>

#include "base/status.h"
#include "planner/attributes.h"

namespace sluice::plan {
class Strategy;
}

namespace sluice::planner {
struct Options;
}

namespace sluice::planner {

// The attributes for a job's pods, in the order in which errors name them.
const std::vector<const char*>& PodAttributes();

// Puts their requests into the plan; if jobs do not run on pods (options.pods), each given one is
// an error. Every mistake is a diagnostic of its own, at its part of the text. PermissionDenied:
// options.pods_allowed does not have it.
Status FillPods(const AttributeSet& attributes, const Options& options, plan::Strategy* strategy);

}  // namespace sluice::planner
