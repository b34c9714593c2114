#pragma once

#include <cstdint>

#include "base/row_batch.h"
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
Schema JobColumns();  // of SHOW JOB

// CANCEL JOB requests the end and does not wait; WAIT JOB reports progress, and ends like the job's
// statement: with its row, or with its error. For a job whose rows went to its client, it answers
// as SHOW JOB.
Status ExecuteJob(const plan::JobPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
