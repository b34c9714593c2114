#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "elastic/fleet/fleet.h"

namespace sluice::executor {

// The child's side of LocalFleet: reads the descriptors that a started process inherits. Descriptor
// 3 holds the configuration and the secret (each length-prefixed); 4 is the reading end of a pipe
// that is never written to, and is closed when the launcher dies.
inline constexpr int kConfigDescriptor = 3;
inline constexpr int kLauncherDescriptor = 4;

struct InheritedConfig {
  std::string config;
  std::string secret;
};
// Reads descriptor 3 to its end and closes it. An error if nothing was inherited: a user has typed
// `sluice worker` at a prompt.
Result<InheritedConfig> ReadInheritedConfig();

// The main function of `sluice master | worker | ps`: dies with its parent, turns SIGTERM and
// SIGINT into a stop that completes within two seconds (of a server: 28), runs the role. Call it
// first in main, before any thread starts. Returns the exit code.
int RunChildProcess(elastic::Role role);

// The main function of a job's process, however it received its configuration: turns SIGTERM and
// SIGINT into a stop that completes in the same time, and runs. Call before any thread starts.
int RunProcess(elastic::Role role,
               const std::function<Result<int>(const std::stop_token& stop)>& run);

// The main function of a process started by StartDetached, such as `sluice job`: survives the
// process that started it, and turns SIGTERM and SIGINT into a stop that completes within ten
// seconds. `launcher`: the connection to the starting process. Call it first in main, too. Returns
// the exit code.
using DetachedRole = std::function<Result<int>(const InheritedConfig& inherited, int launcher,
                                               const std::stop_token& stop)>;
int RunDetached(const std::string& role, const DetachedRole& run);
int RunDetachedJob();

}  // namespace sluice::executor
