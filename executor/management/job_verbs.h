#pragma once

#include "base/status.h"

namespace sluice::plan {
class JobPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// CANCEL JOB, which requests the end and does not wait, and WAIT JOB. Errors point at the
// statement.
Status ExecuteJob(const plan::JobPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
