#pragma once

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::plan {
class ImportModelPlan;
}

namespace sluice::executor {

struct Context;
class ResultSink;

// IMPORT MODEL: a job that makes the next version of a model, which belongs to the user if it is
// new, as a training does. Answers with one row. Refused in a transaction: the model would survive
// a ROLLBACK.
Status ExecuteImportModel(const plan::ImportModelPlan& plan, Context& context, ResultSink& sink);
Schema ImportedColumns();

}  // namespace sluice::executor
