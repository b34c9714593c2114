#pragma once

#include "base/status.h"

namespace sluice::plan {
class ModelReportPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// TO EXPLAIN model: (feature, fscore, gain) rows, most gain first; written to a table if the
// statement names one.
Status ExecuteModelReport(const plan::ModelReportPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
