#include "executor/pods/controller_process.h"

#include <fmt/core.h>

#include <memory>
#include <random>

#include "elastic/transport/metrics_page.h"
#include "executor/pods/api_metrics.h"
#include "k8s/controller.h"
#include "k8s/rights.h"

namespace sluice::executor {
namespace {

// Of all controllers ever: a pod's host name may come back.
std::string NewHolder() {
  std::random_device random;
  return fmt::format("controller-{:08x}{:08x}", random(), random());
}

std::string Metrics(const k8s::Controller& controller, const k8s::ApiClient& client) {
  using Kind = elastic::MetricsText::Kind;
  const k8s::Controller::Counts counts = controller.counts();
  elastic::MetricsText text;
  const auto add = [&text](const char* name, Kind kind, const char* help, auto value) {
    text.Add(name, kind, help, {}, static_cast<double>(value));
  };
  add("sluice_controller_leads", Kind::kGauge, "1: this controller acts.", counts.leads ? 1 : 0);
  add("sluice_controller_nodes", Kind::kGauge, "Nodes of the cluster.", counts.nodes);
  add("sluice_controller_jobs", Kind::kGauge, "TrainingJobs that share it.", counts.jobs);
  add("sluice_controller_granted_workers", Kind::kGauge, "Workers that they may have together.",
      counts.granted_workers);
  add("sluice_controller_waiting_pods", Kind::kGauge,
      "Pods of services that wait for room that workers could make.", counts.waiting_pods);
  add("sluice_controller_waiting_pod_seconds_total", Kind::kCounter,
      "Seconds that such pods have waited, together.", counts.waiting_pod_seconds);
  add("sluice_controller_decisions_total", Kind::kCounter, "Decisions.", counts.decisions);
  add("sluice_controller_decision_seconds_total", Kind::kCounter, "Seconds spent deciding.",
      counts.decision_seconds);
  add("sluice_controller_grants_total", Kind::kCounter, "Grants written.", counts.grants);
  add("sluice_controller_failed_grants_total", Kind::kCounter, "Grants that were not written.",
      counts.failed_grants);
  AddCalls(client, text);
  AddWatchRestarts(controller.watch_restarts(), text);
  return text.text();
}

}  // namespace

Status RunController(const ControllerSettings& settings, const KubernetesPlace& kubernetes,
                     const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto access, KubernetesAccess::Open(kubernetes));
  const std::string& namespace_name =
      settings.namespace_name.empty() ? access->namespace_name() : settings.namespace_name;
  RETURN_IF_ERROR(
      k8s::CheckRights(access->client(), k8s::Account::kController, namespace_name, stop));
  k8s::Controller controller(access->client(),
                             {.namespace_name = namespace_name, .holder = NewHolder()});
  std::unique_ptr<elastic::MetricsPage> page;
  if (!settings.metrics.empty()) {
    ASSIGN_OR_RETURN(page, elastic::MetricsPage::Start(settings.metrics, [&] {
                       return Metrics(controller, access->client());
                     }));
  }
  return controller.Run(stop);
}

}  // namespace sluice::executor
