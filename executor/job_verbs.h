#pragma once

#include <cstdint>

#include "base/status.h"

namespace sluice::plan {
class JobPlan;
class ShowPlan;
}  // namespace sluice::plan

namespace sluice::executor {

struct Context;
class ResultSink;

// Statements about jobs. Errors point at the statement.
Status ShowJobs(const plan::ShowPlan& plan, Context& context, ResultSink& sink);
Status ShowJob(int64_t id, Span place, Context& context, ResultSink& sink);

// CANCEL JOB asks and does not wait; WAIT JOB ends with the job, and with its error.
Status ExecuteJob(const plan::JobPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
