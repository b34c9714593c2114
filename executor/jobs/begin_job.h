#pragma once

#include <memory>
#include <string>

#include "base/row_batch.h"
#include "base/status.h"
#include "executor/jobs/job_record.h"

namespace sluice::executor {

struct Context;

// Begins the job of a statement.
// `columns`: of its answer; none: rows go to the client only, or are not known yet.
Result<std::unique_ptr<JobRecord>> BeginJob(Context& context, const std::string& kind,
                                            const std::string& model, const Schema& columns = {});

}  // namespace sluice::executor
