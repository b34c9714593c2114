#pragma once

#include <string>
#include <string_view>

#include "models/trees/histogram/objective.h"
#include "models/trees/histogram/row_share.h"
#include "models/trees/histogram/threads.h"

namespace sluice::models::histogram {

// Whether RoundMetric computes XGBoost's metric of this name, "error@0.7", for so many outputs.
bool KnowsMetric(std::string_view name, size_t outputs);

// Of metrics that are means over rows: what some rows add.
struct ErrorSum {
  double errors = 0, weights = 0;
};
bool IsMean(std::string_view metric);
// Precondition: KnowsMetric, IsMean.
ErrorSum SumErrors(const std::string& name, const ObjectiveSettings& settings,
                   const Objective& objective, const RowShare& rows, Threads* threads);
double MetricOf(std::string_view name, const ErrorSum& sum);

// A metric of a share's rows by their margins, as in XGBoost 1.7; NaN where it is undefined.
// Precondition: KnowsMetric.
double RoundMetric(const std::string& name, const ObjectiveSettings& settings,
                   const Objective& objective, const RowShare& rows, Threads* threads);

}  // namespace sluice::models::histogram
