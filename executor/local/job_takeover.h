#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "executor/local/job_news.h"

namespace sluice::executor {

struct Context;

// A job whose process was lost, and which a new process continues.
struct TakenOver {
  int64_t job = 0;
  // Its news; an error: no process could be started, and the job waits.
  Result<std::unique_ptr<JobListener>> listener;
};

// Starts a process for each of the user's jobs that wait for one (FindWaitingJobs), with the user's
// login: it continues from the job's checkpoint if there is one, else from the beginning. If
// several processes try this at once, one succeeds. Other users' jobs are left alone.
Result<std::vector<TakenOver>> TakeOverLostJobs(Context& context);

}  // namespace sluice::executor
