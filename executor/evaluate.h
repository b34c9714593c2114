#pragma once

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::plan {
class EvaluatePlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// Scores every row of the select and answers one row: loss and the task's metrics; also written to
// a table where the statement names one (swapped in when complete).
Status ExecuteEvaluate(const plan::EvaluatePlan& plan, Context& context, ResultSink& sink);

// The columns of that row. Errors: of finding the model.
Result<Schema> EvaluateColumns(const plan::EvaluatePlan& plan, Context& context);

}  // namespace sluice::executor
