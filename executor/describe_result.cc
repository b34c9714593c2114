#include "catalog/catalog.h"
#include "executor/executor.h"
#include "executor/predict.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"
#include "planner/stored_plan.h"

namespace sluice::executor {
namespace {

// Hears what an answer looks like, and not the answer.
class HeaderSink final : public ResultSink {
 public:
  Status Header(const Schema& schema) override {
    schema_ = schema;
    return OkStatus();
  }
  Status Rows(const RowBatch& /*batch*/) override { return OkStatus(); }
  void Notice(const std::string& /*message*/) override {}
  void Progress(const elastic::Progress& /*progress*/) override {}
  void Done(const std::string& /*tag*/) override {}
  Schema Take() { return std::move(schema_); }

 private:
  Schema schema_;
};

Result<Schema> DescribeEvaluate(const plan::EvaluatePlan& plan, Context& context) {
  ASSIGN_OR_RETURN(
      const catalog::ModelVersion version,
      context.catalog.models().Find(plan.model_schema(), plan.model_name(), plan.model_version()));
  ASSIGN_OR_RETURN(const plan::TrainPlan trained, planner::ReadStoredPlan(version.plan));
  return planner::EvaluateResult(plan, models::TaskOf(trained.model()));
}

}  // namespace

Result<Schema> DescribeResult(const plan::Plan& plan, Context& context) {
  switch (plan.kind_case()) {
    case plan::Plan::kTrain:
      return planner::TrainResult(plan.train());
    case plan::Plan::kPredict:
      return plan.predict().has_table() ? planner::PredictTableResult()
                                        : OutputColumns(plan.predict());
    case plan::Plan::kEvaluate:
      return DescribeEvaluate(plan.evaluate(), context);
    case plan::Plan::kReport:
      return planner::ReportResult();
    case plan::Plan::kShow:
    case plan::Plan::kDescribe: {  // these change nothing, and take no time
      HeaderSink sink;
      RETURN_IF_ERROR(Execute(plan, context, sink));
      return sink.Take();
    }
    default:
      return Schema();
  }
}

}  // namespace sluice::executor
