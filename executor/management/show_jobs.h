#pragma once

#include <cstdint>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::plan {
class ShowPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

Status ShowJobs(const plan::ShowPlan& plan, Context& context, ResultSink& sink);
// Errors point at `place`.
Status ShowJob(int64_t id, Span place, Context& context, ResultSink& sink);
Schema JobColumns();  // of SHOW JOB

}  // namespace sluice::executor
