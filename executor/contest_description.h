#pragma once

#include <vector>

#include "executor/model_description.h"

namespace sluice::executor {

// Which models a contest has tried, and what each was worth; nothing of other trainings.
std::vector<DescriptionLine> DescribeContest(const plan::TrainPlan& plan);

}  // namespace sluice::executor
