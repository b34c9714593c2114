#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "elastic/fleet/fleet.h"

namespace sluice::executor {

// The other end of LocalFleet: what a started process does with the descriptors it inherits.
// Descriptor 3 holds the configuration and the secret (each length-prefixed); 4 is the reading end
// of a pipe that nobody writes to, and that is hung up when the launcher has died.
inline constexpr int kConfigDescriptor = 3;
inline constexpr int kLauncherDescriptor = 4;

struct InheritedConfig {
  std::string config;
  std::string secret;
};
// Reads descriptor 3 to its end and closes it. An error when nothing was inherited: someone typed
// `sluice worker` at a prompt.
Result<InheritedConfig> ReadInheritedConfig();

// The whole life of `sluice master | worker | ps`: dies with its parent, turns SIGTERM and SIGINT
// into a stop that is over within two seconds, runs the role. Call it first in main, before any
// thread is started. Returns the exit code.
int RunChildProcess(elastic::Role role);

// The life of a process of a job, however it came to what it has to know: turns SIGTERM and SIGINT
// into a stop that is over within two seconds, and runs. Before any thread is started.
int RunProcess(elastic::Role role,
               const std::function<Result<int>(const std::stop_token& stop)>& run);

// The whole life of a process that StartDetached has started, such as `sluice job`: lives on when
// whoever has started it goes, and turns SIGTERM and SIGINT into a stop that is over within ten
// seconds. `launcher`: the connection to that one. Call it first in main, too. Returns the exit
// code.
using DetachedRole = std::function<Result<int>(const InheritedConfig& inherited, int launcher,
                                               const std::stop_token& stop)>;
int RunDetached(const std::string& role, const DetachedRole& run);
int RunDetachedJob();

}  // namespace sluice::executor
