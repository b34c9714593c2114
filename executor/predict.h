#pragma once

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::plan {
class PredictPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// What it writes or streams: columns as a table holds them, or as they are shown to a client.
Schema OutputColumns(const plan::PredictPlan& plan);

// Scores every row of the select, into a table (swapped in when complete) or to the client.
Status ExecutePredict(const plan::PredictPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
