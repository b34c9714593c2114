#pragma once

#include <string_view>

#include "base/status.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::planner {

// Reads the plan that is stored with a model. The bytes are not trusted: they come from the
// catalog's tables, which others may write. They are refused (XX001) if they are malformed, if
// reading them would take far more memory than they do, or if a number in them, an attribute among
// them, is out of its type's range. Whether features, model and weights fit together is checked
// when the model is built.
Result<plan::TrainPlan> ReadStoredPlan(std::string_view bytes);

}  // namespace sluice::planner
