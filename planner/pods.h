#pragma once

#include <vector>

#include "base/status.h"
#include "planner/attributes.h"

namespace sluice::plan {
class Strategy;
}

namespace sluice::planner {

// The attributes that say how the pods of a job are made, in the order in which errors name them.
const std::vector<const char*>& PodAttributes();

// What they ask for, into the plan; where jobs do not run on pods (`on_pods`), each that is given
// is an error. Every mistake is a diagnostic of its own, at the part of the text that it is about.
Status FillPods(const AttributeSet& attributes, bool on_pods, plan::Strategy* strategy);

}  // namespace sluice::planner
