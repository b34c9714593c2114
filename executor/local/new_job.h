#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "catalog/job_store.h"

namespace sluice::executor {

struct Context;
class JobConfig;
class JobListener;

// What precedes the processes of a job, on this machine and on pods.

// A job that has its row, and news of the process that carries it out.
struct StartedJob {
  int64_t job = 0;
  std::unique_ptr<JobListener> listener;
};

// Makes the row of the statement, a train, predict or evaluate one, and names `runner` in it.
Result<int64_t> MakeJobRow(const JobConfig& config, Context& context, catalog::JobRunner runner);

// Ends the row of a job whose processes have not begun; whoever asked for the job may ask again.
void AbandonNewJob(catalog::JobStore& jobs, int64_t job, const Status& why);

}  // namespace sluice::executor
