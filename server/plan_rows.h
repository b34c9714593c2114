#pragma once

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

// EXPLAIN [(FORMAT JSON)] <extended statement>: its plan as rows of one column `plan`, one line a
// row. Nothing runs.
Status ExplainPlan(const parser::ExplainPlanStatement& statement, Session& session,
                   executor::ResultSink& sink);

}  // namespace sluice::server
