#pragma once

#include "base/status.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// A train statement from plan to answer: creates the job, trains here or through a master process,
// sends the result row.
Status ExecuteTrain(const plan::TrainPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
