#include "executor/executor.h"

#include <fmt/core.h>

#include "base/machine.h"
#include "executor/cluster.h"
#include "executor/files/export_model.h"
#include "executor/files/import_model.h"
#include "executor/management/job_verbs.h"
#include "executor/management/model_verbs.h"
#include "executor/management/show.h"
#include "executor/scoring/evaluate.h"
#include "executor/scoring/model_report.h"
#include "executor/scoring/predict.h"
#include "executor/training/train.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

int64_t Context::memory_bytes() const {
  return cluster != nullptr ? cluster->memory_bytes() : MachineMemory();
}

Status Execute(const plan::Plan& plan, Context& context, ResultSink& sink) {
  switch (plan.kind_case()) {
    case plan::Plan::kTrain:
      return ExecuteTrain(plan.train(), context, sink);
    case plan::Plan::kPredict:
      return ExecutePredict(plan.predict(), context, sink);
    case plan::Plan::kEvaluate:
      return ExecuteEvaluate(plan.evaluate(), context, sink);
    case plan::Plan::kReport:
      return ExecuteModelReport(plan.report(), context, sink);
    case plan::Plan::kShow:
      return ExecuteShow(plan.show(), context, sink);
    case plan::Plan::kDescribe:
      return ExecuteDescribe(plan.describe(), context, sink);
    case plan::Plan::kCreateModelType:
      return ExecuteCreateModelType(plan.create_model_type(), context, sink);
    case plan::Plan::kDropModel:
      return ExecuteDropModel(plan.drop_model(), context, sink);
    case plan::Plan::kAlterModel:
      return ExecuteAlterModel(plan.alter_model(), context, sink);
    case plan::Plan::kModelGrant:
      return ExecuteModelGrant(plan.model_grant(), context, sink);
    case plan::Plan::kExportModel:
      return ExecuteExportModel(plan.export_model(), context, sink);
    case plan::Plan::kImportModel:
      return ExecuteImportModel(plan.import_model(), context, sink);
    case plan::Plan::kJob:
      return ExecuteJob(plan.job(), context, sink);
    case plan::Plan::KIND_NOT_SET:
      break;
  }
  return Internal("an empty plan cannot run");
}

}  // namespace sluice::executor
