#include <stop_token>

#include "executor/pods/controller_process.h"
#include "server/commands.h"
#include "server/config/signals.h"
#include "server/config/terminal.h"
#include "server/shell/shell.h"

namespace sluice::server {

int RunController(const Config& config) {
  std::stop_source ended;
  const SignalThread signals([&ended](int) { ended.request_stop(); });
  const Status status =
      executor::RunController({.namespace_name = config.pods_namespace, .metrics = config.metrics},
                              KubernetesOfEnvironment(), ended.get_token());
  if (!status.ok()) {
    SayError(status, "");
    return kExitStatementFailed;
  }
  return kExitOk;
}

}  // namespace sluice::server
