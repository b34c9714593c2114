#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/metric.h"

namespace sluice::planner {

// "Accuracy,AUC" into canonical names; a metric that is unknown, or that the task does not have, is
// an error that lists those it has.
Result<std::vector<std::string>> ReadMetrics(std::string_view list, models::Task task, Span span);

// Cuts at commas; without blanks and empty parts.
std::vector<std::string> SplitList(std::string_view list);

}  // namespace sluice::planner
