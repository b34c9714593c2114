#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "elastic/transport/metrics_page.h"
#include "k8s/api_client.h"

namespace sluice::executor {

// Adds metrics about a process's use of Kubernetes for Prometheus.
void AddCalls(const k8s::ApiClient& client, elastic::MetricsText& text);
void AddWatchRestarts(const std::map<std::string, uint64_t>& restarts, elastic::MetricsText& text);

}  // namespace sluice::executor
