#include "executor/pods/controller_process.h"

#include <fmt/core.h>

#include <memory>
#include <random>

#include "elastic/transport/metrics_page.h"
#include "executor/pods/api_metrics.h"
#include "executor/pods/controller_metrics.h"
#include "k8s/controller.h"
#include "k8s/rights.h"

namespace sluice::executor {
namespace {

// Of all controllers ever: a pod's host name may come back.
std::string NewHolder() {
  std::random_device random;
  return fmt::format("controller-{:08x}{:08x}", random(), random());
}

}  // namespace

Status RunController(const ControllerSettings& settings, const KubernetesPlace& kubernetes,
                     const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto access, KubernetesAccess::Open(kubernetes));
  const std::string namespace_name = settings.namespace_name.empty()
                                         ? std::string(k8s::kControllerNamespace)
                                         : settings.namespace_name;
  RETURN_IF_ERROR(
      k8s::CheckRights(access->client(), k8s::Account::kController, namespace_name, stop));
  k8s::Controller controller(access->client(),
                             {.namespace_name = namespace_name, .holder = NewHolder()});
  std::unique_ptr<elastic::MetricsPage> page;
  if (!settings.metrics.empty()) {
    ASSIGN_OR_RETURN(page, elastic::MetricsPage::Start(settings.metrics, {[&] {
                                                         elastic::MetricsText text;
                                                         AddFigures(controller.figures(), text);
                                                         AddCalls(access->client(), text);
                                                         AddWatchRestarts(
                                                             controller.watch_restarts(), text);
                                                         return text.text();
                                                       }}));
  }
  return controller.Run(stop);
}

}  // namespace sluice::executor
