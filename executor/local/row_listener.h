#pragma once

#include <memory>
#include <string>

#include "catalog/job_store.h"
#include "executor/local/job_news.h"

namespace sluice::executor {

// Follows a job through its row and records, for jobs whose processes are not on this machine: how
// far it is, and when it ends. Can also cancel it there. `jobs` outlives it. Not thread-safe.
std::unique_ptr<JobListener> ListenToRow(catalog::JobStore& jobs, int64_t job);

}  // namespace sluice::executor
