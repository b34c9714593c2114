#pragma once

#include "base/status.h"

namespace sluice::plan {
class PredictPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// Scores every row of the select, into a table (swapped in when complete) or to the client.
Status ExecutePredict(const plan::PredictPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
