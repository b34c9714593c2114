#pragma once

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::plan {
class EvaluatePlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// Scores every row of the select and answers one row: loss and the task's metrics; also writes it
// to a table if the statement names one (swapped in when complete).
Status ExecuteEvaluate(const plan::EvaluatePlan& plan, Context& context, ResultSink& sink);

// The columns of that row. Fails if the model is not found.
Result<Schema> EvaluateColumns(const plan::EvaluatePlan& plan, Context& context);

}  // namespace sluice::executor
