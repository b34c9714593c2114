#pragma once

#include "base/status.h"
#include "elastic/fleet/forecast.h"
#include "k8s/cluster_view.h"
#include "k8s/pod_spec.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// What would become of a training's workers if its pods came now, as a controller with the usual
// settings decides. `shape`: without the statement's requests. An error if no pods can be built.
// Pure.
Result<elastic::StartForecast> ForecastOnPods(const plan::TrainPlan& plan, k8s::PodShape shape,
                                              k8s::ClusterView view);

}  // namespace sluice::executor
