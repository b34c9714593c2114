#pragma once

#include "base/status.h"

namespace sluice::plan {
class AlterModelPlan;
class CreateModelTypePlan;
class ModelGrantPlan;
class DropModelPlan;
class ModelReference;
}  // namespace sluice::plan

namespace sluice::executor {

struct Context;
class ResultSink;

// Statements about stored models. Errors point at the model's name in the script.
Status ShowModels(Context& context, ResultSink& sink);
Status ShowModelVersions(const plan::ModelReference& model, Context& context, ResultSink& sink);
Status ShowTrain(const plan::ModelReference& model, Context& context, ResultSink& sink);
Status DescribeModel(const plan::ModelReference& model, Context& context, ResultSink& sink);

// Refused in a transaction: the changes would survive a ROLLBACK.
Status ExecuteCreateModelType(const plan::CreateModelTypePlan& plan, Context& context,
                              ResultSink& sink);
Status ExecuteDropModel(const plan::DropModelPlan& plan, Context& context, ResultSink& sink);
Status ExecuteAlterModel(const plan::AlterModelPlan& plan, Context& context, ResultSink& sink);
Status ExecuteModelGrant(const plan::ModelGrantPlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
