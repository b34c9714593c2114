#include "planner/planner.h"

#include <fmt/core.h>

#include "planner/bind_optimize.h"
#include "planner/plan_contest_internal.h"
#include "planner/plan_use_internal.h"

namespace sluice::planner {
namespace {

// One overload per verb.
struct Planner {
  catalog::DataSource& source;
  catalog::ModelStore& models;
  const Options& options;

  Result<plan::Plan> operator()(const parser::TrainStatement& statement) const {
    return PlanTraining(statement, source, models, options);
  }
  Result<plan::Plan> operator()(const parser::PredictStatement& statement) const {
    return PlanPredict(statement, source, models, options);
  }
  Result<plan::Plan> operator()(const parser::EvaluateStatement& statement) const {
    return PlanEvaluate(statement, source, models, options);
  }
  Result<plan::Plan> operator()(const parser::ModelReportStatement& statement) const {
    return PlanReport(statement, source, models);
  }
  Result<plan::Plan> operator()(const parser::RunStatement& statement) const {
    return Unimplemented("TO RUN is not built yet")
        .At(statement.verb)
        .Hint("run the program beside Sluice, on the same tables");
  }
  Result<plan::Plan> operator()(const parser::OptimizeStatement& statement) const {
    RETURN_IF_ERROR(CheckOptimize(statement, source));
    return Unimplemented(
               fmt::format("TO {} is not built yet", statement.maximize ? "MAXIMIZE" : "MINIMIZE"))
        .At(statement.verb)
        .Hint("nothing has run; solve the program beside Sluice, on the same tables");
  }
  Result<plan::Plan> operator()(const parser::ShowStatement& statement) const {
    return PlanShow(statement);
  }
  Result<plan::Plan> operator()(const parser::DescribeStatement& statement) const {
    return PlanDescribe(statement);
  }
  Result<plan::Plan> operator()(const parser::CreateModelTypeStatement& statement) const {
    return PlanCreateModelType(statement, options);
  }
  Result<plan::Plan> operator()(const parser::DropModelStatement& statement) const {
    return PlanDropModel(statement);
  }
  Result<plan::Plan> operator()(const parser::AlterModelStatement& statement) const {
    return PlanAlterModel(statement);
  }
  Result<plan::Plan> operator()(const parser::ModelGrantStatement& statement) const {
    return PlanModelGrant(statement, source);
  }
  Result<plan::Plan> operator()(const parser::ExportModelStatement& statement) const {
    return PlanExportModel(statement);
  }
  Result<plan::Plan> operator()(const parser::ImportModelStatement& statement) const {
    return PlanImportModel(statement);
  }
  Result<plan::Plan> operator()(const parser::JobStatement& statement) const {
    return PlanJob(statement);
  }
  Result<plan::Plan> operator()(const parser::SetStatement& statement) const {
    return Internal("SET is the session's own").At(statement.span);
  }
};

}  // namespace

Result<plan::Plan> MakePlan(const parser::ExtendedStatement& statement, catalog::DataSource& source,
                            catalog::ModelStore& models, const Options& options) {
  return std::visit(Planner{source, models, options}, statement);
}

}  // namespace sluice::planner
