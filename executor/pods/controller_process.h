#pragma once

#include <stop_token>
#include <string>

#include "base/status.h"
#include "executor/pods/kubernetes_access.h"

namespace sluice::executor {

struct ControllerSettings {
  std::string namespace_name;  // of its Lease; empty: sluice-system
  std::string metrics;         // "HOST:PORT" of GET /metrics; empty: nowhere
};

// Runs k8s::Controller until it is stopped. Begins with a check of its rights, whose error names
// all that are missing.
Status RunController(const ControllerSettings& settings, const KubernetesPlace& kubernetes,
                     const std::stop_token& stop);

}  // namespace sluice::executor
