#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "catalog/job_store.h"

// What the statements about jobs have in common; only job_verbs.cc, show_jobs.cc and
// wait_for_job.cc include this.
namespace sluice::executor {

struct Context;

// Continues jobs whose processes are gone where possible, or marks them as ended, and removes what
// those processes left behind. Users who may only read see the jobs as they are.
void LookForLostJobs(Context& context);

// What a running job without a process waits for; "": its process lives, as far as we can know.
std::string WaitsFor(int64_t id, catalog::JobStore& jobs);

// An error points at `place`.
Result<catalog::Job> FindJob(int64_t id, Span place, catalog::JobStore& jobs);

// Events that tell of each epoch: a long job has thousands of them.
bool IsEpochEvent(const catalog::JobEvent& event);

}  // namespace sluice::executor
