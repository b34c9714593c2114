#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "executor/job_news.h"

namespace sluice::executor {

struct Context;

// A job whose process was lost, and which another one runs now.
struct TakenOver {
  int64_t job = 0;
  // How it goes on; an error: no process could be started for it, and it waits.
  Result<std::unique_ptr<JobListener>> listener;
};

// Starts a process of its own for each of the user's jobs that wait for one (FindWaitingJobs), with
// the user's login: from its checkpoint, where it keeps any, or else from the beginning. Of several
// who do so at the same time one succeeds. Jobs of others stay as they are.
Result<std::vector<TakenOver>> TakeOverLostJobs(Context& context);

}  // namespace sluice::executor
