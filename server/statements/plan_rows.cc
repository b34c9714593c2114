#include "server/statements/plan_rows.h"

#include <type_traits>
#include <variant>

#include "catalog/catalog.h"
#include "executor/executor.h"
#include "executor/result_rows.h"
#include "planner/explain.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "server/statements/job_place.h"
#include "server/statements/session.h"
#include "server/statements/statement_scope.h"

namespace sluice::server {

Status CheckExplainable(const parser::ExtendedStatement& statement) {
  return std::visit(
      []<typename Statement>([[maybe_unused]] const Statement& any) -> Status {
        if constexpr (std::is_same_v<Statement, parser::SetStatement> ||
                      parser::kAboutCatalog<Statement>) {
          return InvalidArgument("this statement has no plan: it is answered at once")
              .At(any.span)
              .Hint("EXPLAIN is for TRAIN, PREDICT, EVALUATE and EXPLAIN model");
        }
        return OkStatus();
      },
      statement);
}

void AddPlan(const plan::Plan& plan, Session& session, executor::ResultRows* rows) {
  const std::string text = planner::ExplainText(plan);
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = std::min(text.find('\n', begin), text.size());
    rows->Add({text.substr(begin, newline - begin)});
    begin = newline + 1;
  }
  if (const std::string place = DescribeJobPlace(plan, session); !place.empty()) {
    rows->Add({place});
  }
}

Schema ExplainResult(const parser::ExplainPlanStatement& statement) {
  return Schema{{{"plan", DataType::kText, statement.json ? "json" : "text"}}};
}

Status ExplainPlan(const parser::ExplainPlanStatement& statement, std::string_view sql,
                   Session& session, executor::ResultSink& sink) {
  RETURN_IF_ERROR(CheckExplainable(statement.statement));
  ASSIGN_OR_RETURN(const auto scope, StatementScope::Begin(sql, statement.span, session, sink));
  const Result<plan::Plan> planned = planner::MakePlan(
      statement.statement, session.source(), session.catalog().models(), session.planner_options());
  if (!planned.ok() || scope->stop().stop_requested()) {
    return scope->Outcome(planned.ok() ? Cancelled("the statement was cancelled")
                                       : planned.status());
  }
  const plan::Plan& plan = *planned;
  scope->ReportNotices();
  executor::ResultRows rows(ExplainResult(statement));
  if (statement.json) {  // one value, as in PostgreSQL
    rows.Add({planner::ExplainJson(plan)});
  } else {
    AddPlan(plan, session, &rows);
    if (const std::string start = DescribeStart(plan, session, scope->stop()); !start.empty()) {
      rows.Add({start});
    }
  }
  RETURN_IF_ERROR(rows.SendTo(sink));
  sink.Done("EXPLAIN");
  return OkStatus();
}

}  // namespace sluice::server
