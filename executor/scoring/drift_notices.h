#pragma once

#include <functional>
#include <vector>

#include "executor/result_rows.h"
#include "executor/scoring/drift.h"

namespace sluice::executor {

class ResultSink;

// A notice for each column that is unlike the training's. What it says of the training's numbers is
// for those who `may_inspect` the model only, which is asked where there is something to say.
void TellDrift(const Drift& drift, const std::function<bool()>& may_inspect, ResultSink& sink);

// All columns as rows of planner::DriftResult, those that are shifted the most first.
ResultRows DriftRows(const Drift& drift);

}  // namespace sluice::executor
