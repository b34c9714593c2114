#pragma once

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::plan {
class ExportModelPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// EXPORT MODEL: answers with one row, the model's version and the file. Who may use the model may
// export it.
Status ExecuteExportModel(const plan::ExportModelPlan& plan, Context& context, ResultSink& sink);
Schema ExportedColumns();

}  // namespace sluice::executor
