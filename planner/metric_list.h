#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/metrics/metric.h"

namespace sluice::planner {

// Splits "mean_absolute_error, AUC" into names, each as the answer's column will be called: as
// written, in our spelling if only the case differs. Duplicates are merged. A metric that is
// unknown, or that the model lacks, is an error that lists the available ones.
Result<std::vector<std::string>> ReadMetrics(std::string_view list, const models::ModelSpec& model,
                                             Span span);

// Splits at commas; drops blanks and empty parts.
std::vector<std::string> SplitList(std::string_view list);

}  // namespace sluice::planner
