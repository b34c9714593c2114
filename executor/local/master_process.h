#pragma once

#include <stop_token>
#include <string>

namespace sluice::executor {

// The main function of `sluice master`: runs a train plan on a fleet of local processes for the
// gateway that launched it. `config` and `secret` come from ProcessSpec. Returns the exit code.
int RunMasterProcess(const std::string& config, const std::string& secret, std::stop_token stop);

}  // namespace sluice::executor
