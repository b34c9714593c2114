#pragma once

#include "base/status.h"
#include "catalog/job_store.h"

namespace sluice::executor {

// Begins JobRunner::place of a job on pods: who keeps its masters says when it is lost.
inline constexpr std::string_view kPodsPlace = "pods/";

// This process, as the runner of a job.
catalog::JobRunner ThisProcess();

// A running job says that it lives so often; one of another machine that has not for so much longer
// is given up. Of this machine, the system knows which processes there are.
inline constexpr double kSeenSeconds = 10;
inline constexpr double kUnseenSeconds = 180;

// How a job ends whose process was lost: with what to do about it, and from which checkpoint it
// would go on.
Status LostJob(catalog::JobStore& jobs, const catalog::Job& job);

// Jobs whose process is gone (killed, or its machine was) are RUNNING as far as anybody could write
// down: marks them FAILED, with what to do about it.
Status MarkLostJobs(catalog::JobStore& jobs);

}  // namespace sluice::executor
