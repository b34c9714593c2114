#pragma once

#include <cstdint>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

Status ShowJobs(const parser::ShowStatement& statement, Session& session,
                executor::ResultSink& sink);
// State, row counts and events of one job. `span` is where errors point to.
Status ShowJob(int64_t id, Span span, Session& session, executor::ResultSink& sink);
// CANCEL JOB asks the process that runs the job to stop; WAIT JOB shows the job's events until it
// has ended, and fails with the job's own error where it did not succeed.
Status RunJobStatement(const parser::JobStatement& statement, Session& session,
                       executor::ResultSink& sink);

}  // namespace sluice::server
