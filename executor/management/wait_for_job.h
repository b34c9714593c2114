#pragma once

#include "base/status.h"

namespace sluice::plan {
class JobPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// WAIT JOB: reports the job's progress and events, and ends like its statement: with its row, or
// with its error. For a job whose rows went to its client, it answers as SHOW JOB.
Status WaitForJob(const plan::JobPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
