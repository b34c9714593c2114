#pragma once

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::plan {
class PredictPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// The columns that it writes or streams: as stored in a table, or as shown to a client.
Schema OutputColumns(const plan::PredictPlan& plan);

// Scores every row of the select, into a table (swapped in when complete) or to the client.
Status ExecutePredict(const plan::PredictPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
