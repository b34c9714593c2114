#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "catalog/job_store.h"
#include "elastic/job/training_job.h"
#include "executor/local/job_news.h"

namespace sluice::executor {

// Follows a job through its row and records, for jobs whose processes are not on this machine: how
// far it is, and when it ends. Can also cancel it there. `jobs` outlives it. Not thread-safe.
std::unique_ptr<JobListener> ListenToRow(catalog::JobStore& jobs, int64_t job);

// How far a running job has come: of a job on pods, or of a TrainingJob. nullopt: not known.
Result<std::optional<elastic::Progress>> ProgressOf(int64_t job, catalog::JobStore& jobs);

}  // namespace sluice::executor
