#pragma once

#include <string>

#include "elastic/fleet/fleet.h"

namespace sluice::executor {

// The whole life of `sluice master | worker | ps FOLDER` in a pod: FOLDER has the files `config`
// and `secret` (k8s::kProcessFolder), variables say the pod's address and number. SIGTERM is an
// eviction: nobody else is stopped, and a master's job goes on with the next one. Call it first in
// main, before any thread is started. Returns the exit code; 0 of a master: its job has ended, and
// its row says how.
int RunPod(elastic::Role role, const std::string& folder);

}  // namespace sluice::executor
