#pragma once

#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultRows;
class ResultSink;
}  // namespace sluice::executor

namespace sluice::plan {
class Plan;
}

namespace sluice::server {

class Session;

// The column of its result.
Schema ExplainResult(const parser::ExplainPlanStatement& statement);

// EXPLAIN [(FORMAT JSON)] <extended statement>: its plan as rows of one column `plan`, one line per
// row. Nothing runs.
// `sql`: the statement's text.
Status ExplainPlan(const parser::ExplainPlanStatement& statement, std::string_view sql,
                   Session& session, executor::ResultSink& sink);

// Refuses statements that are answered at once, which have no plan.
Status CheckExplainable(const parser::ExtendedStatement& statement);
// A line of the plan in each row, and where its job runs.
void AddPlan(const plan::Plan& plan, Session& session, executor::ResultRows* rows);

}  // namespace sluice::server
