#pragma once

#include "base/status.h"

namespace sluice::plan {
class DescribePlan;
class ShowPlan;
}  // namespace sluice::plan

namespace sluice::executor {

struct Context;
class ResultSink;

// SHOW MODELS, SHOW JOBS, DESCRIBE MODEL ...: the contents of the catalog and the registry.
Status ExecuteShow(const plan::ShowPlan& plan, Context& context, ResultSink& sink);
Status ExecuteDescribe(const plan::DescribePlan& plan, Context& context, ResultSink& sink);

}  // namespace sluice::executor
