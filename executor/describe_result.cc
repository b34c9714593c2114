#include "catalog/catalog.h"
#include "catalog/job_store.h"
#include "executor/executor.h"
#include "executor/files/export_model.h"
#include "executor/files/import_model.h"
#include "executor/jobs/job_answer.h"
#include "executor/management/show_cluster.h"
#include "executor/management/show_jobs.h"
#include "executor/place_internal.h"
#include "executor/scoring/evaluate.h"
#include "executor/scoring/predict.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

// Receives the header of an answer and discards the rest.
class HeaderSink final : public ResultSink {
 public:
  Status Header(const Schema& schema) override {
    schema_ = schema;
    return OkStatus();
  }
  Schema Take() { return std::move(schema_); }

 private:
  Schema schema_;
};

// The columns of the job's own answer, if known; else those of SHOW JOB.
Result<Schema> DescribeWait(const plan::JobPlan& plan, Context& context) {
  const auto jobs = context.catalog.JobsFor(context.stop);
  const auto job = jobs->Find(plan.job());
  if (!job.ok()) {
    return Status(job.status()).At(SpanOf(plan.place()));
  }
  ASSIGN_OR_RETURN(const std::string answer, jobs->Answer(plan.job()));
  Schema columns = ColumnsOfAnswer(answer);
  return columns.columns.empty() ? JobColumns() : columns;
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
      return EvaluateColumns(plan.evaluate(), context);
    case plan::Plan::kReport:
      return planner::ReportResult();
    case plan::Plan::kShow:
      if (plan.show().what() == plan::ShowPlan::CLUSTER) {
        return ClusterColumns();  // on pods it takes several calls to execute it
      }
      [[fallthrough]];
    case plan::Plan::kDescribe: {  // these change nothing and are quick
      HeaderSink sink;
      RETURN_IF_ERROR(Execute(plan, context, sink));
      return sink.Take();
    }
    case plan::Plan::kExportModel:
      return ExportedColumns();
    case plan::Plan::kImportModel:
      return ImportedColumns();
    case plan::Plan::kJob:
      return plan.job().action() == plan::JobPlan::WAIT ? DescribeWait(plan.job(), context)
                                                        : Schema();
    default:
      return Schema();
  }
}

}  // namespace sluice::executor
