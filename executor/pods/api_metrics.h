#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "elastic/transport/metrics_page.h"
#include "k8s/api_client.h"

namespace sluice::executor {

// What Prometheus reads of a process's use of Kubernetes.
void AddCalls(const k8s::ApiClient& client, elastic::MetricsText& text);
void AddWatchRestarts(const std::map<std::string, uint64_t>& restarts, elastic::MetricsText& text);

}  // namespace sluice::executor
