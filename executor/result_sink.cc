#include <fmt/core.h>

#include "executor/executor.h"

namespace sluice::executor {

void ResultSink::OutlivesClient(int64_t job) {
  Notice(fmt::format("job {} goes on if this client goes away: WAIT JOB {}", job, job));
}

}  // namespace sluice::executor
