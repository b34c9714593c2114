#include "executor/management/show.h"

#include "executor/executor.h"
#include "executor/management/model_types.h"
#include "executor/management/model_verbs.h"
#include "executor/management/show_cluster.h"
#include "executor/management/show_jobs.h"
#include "executor/place_internal.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

Status SendRows(const plan::ShowPlan& plan, Context& context, ResultSink& sink) {
  switch (plan.what()) {
    case plan::ShowPlan::MODELS:
      return ShowModels(context, sink);
    case plan::ShowPlan::MODEL:
      return ShowModelVersions(plan.model(), context, sink);
    case plan::ShowPlan::TRAIN:
      return ShowTrain(plan.model(), context, sink);
    case plan::ShowPlan::MODEL_TYPES:
      return ShowModelTypes(context, sink);
    case plan::ShowPlan::JOBS:
      return ShowJobs(plan, context, sink);
    case plan::ShowPlan::JOB:
      return ShowJob(plan.job(), SpanOf(plan.place()), context, sink);
    case plan::ShowPlan::CLUSTER:
      return ShowCluster(context, sink);
    default:
      return Internal("a SHOW of something unknown");
  }
}

}  // namespace

Status ExecuteShow(const plan::ShowPlan& plan, Context& context, ResultSink& sink) {
  RETURN_IF_ERROR(SendRows(plan, context, sink));
  sink.Done("SHOW");
  return OkStatus();
}

Status ExecuteDescribe(const plan::DescribePlan& plan, Context& context, ResultSink& sink) {
  RETURN_IF_ERROR(plan.has_model()
                      ? DescribeModel(plan.model(), context, sink)
                      : DescribeModelType(plan.model_type(), SpanOf(plan.place()), context, sink));
  sink.Done("DESCRIBE");
  return OkStatus();
}

}  // namespace sluice::executor
