#include "executor/pods/api_metrics.h"

namespace sluice::executor {

void AddCalls(const k8s::ApiClient& client, elastic::MetricsText& text) {
  for (const auto& [call, count] : client.calls()) {
    text.Add("sluice_kubernetes_calls_total", elastic::MetricsText::Kind::kCounter,
             "Calls of the API server, and how they ended.",
             {{"verb", call.first}, {"outcome", call.second}}, static_cast<double>(count));
  }
}

void AddWatchRestarts(const std::map<std::string, uint64_t>& restarts, elastic::MetricsText& text) {
  for (const auto& [reason, count] : restarts) {
    text.Add("sluice_kubernetes_watch_restarts_total", elastic::MetricsText::Kind::kCounter,
             "Watches that were restarted, by reason.", {{"reason", reason}},
             static_cast<double>(count));
  }
}

}  // namespace sluice::executor
