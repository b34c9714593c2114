#pragma once

#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "parser/ast.h"

namespace sluice::executor {
class ResultSink;
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

}  // namespace sluice::server
