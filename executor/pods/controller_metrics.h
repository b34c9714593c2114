#pragma once

#include "elastic/transport/metrics_page.h"
#include "k8s/controller_figures.h"

namespace sluice::executor {

// Adds a controller's figures for Prometheus. The labels of a job are there while it shares the
// cluster.
void AddFigures(const k8s::ControllerFigures& figures, elastic::MetricsText& text);

}  // namespace sluice::executor
