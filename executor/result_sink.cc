#include <fmt/core.h>

#include "executor/executor.h"

namespace sluice::executor {

Status ResultSink::Copied(std::string_view /*text*/) {
  return Unimplemented("COPY TO STDOUT is not supported here").Hint("run the SELECT itself");
}

void ResultSink::OutlivesClient(int64_t job) {
  Notice(fmt::format("job {} goes on if this client goes away: WAIT JOB {}", job, job));
}

}  // namespace sluice::executor
