#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/metrics/metric.h"

namespace sluice::planner {

// "mean_absolute_error, AUC" into names, each as the answer's column is called: as it is written,
// in our spelling where only the case differs. Two columns of one name become one. A metric that is
// unknown, or that the task does not have, is an error that lists those it has.
Result<std::vector<std::string>> ReadMetrics(std::string_view list, models::Task task, Span span);

// Cuts at commas; without blanks and empty parts.
std::vector<std::string> SplitList(std::string_view list);

}  // namespace sluice::planner
