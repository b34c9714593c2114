#pragma once

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
struct Context;
class ResultSink;
}  // namespace sluice::executor

namespace sluice::plan {
class Plan;
}

namespace sluice::server {

class Session;

// EXPLAIN ANALYZE of a training: runs it, which leaves what the training itself would leave, and
// answers with the plan, the training's own answer and its profile. Waits, whatever sluice.async
// says. `plan`: of the training.
Status AnalyzeTraining(const parser::ExplainPlanStatement& statement, const plan::Plan& plan,
                       executor::Context& context, Session& session, executor::ResultSink& sink);
// 0A000: it is no training.
Status CheckAnalyzable(const parser::ExplainPlanStatement& statement);

}  // namespace sluice::server
