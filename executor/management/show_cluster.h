#pragma once

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::executor {

struct Context;
class ResultSink;

// SHOW CLUSTER: a row for each node, with what services and jobs request of it. Jobs are counted,
// not named: every user may see it.
Schema ClusterColumns();
Status ShowCluster(Context& context, ResultSink& sink);

}  // namespace sluice::executor
