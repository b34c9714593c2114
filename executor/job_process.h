#pragma once

#include <stop_token>
#include <string>

namespace sluice::executor {

// `sluice job`: a train, predict or evaluate statement in a process of its own, from its plan to
// its end: it has its own sessions of the database, its own fleet, and the job's row, and asks
// whoever serves the room for place. `config` and `secret` are a JobConfig and JobSecrets; what
// happens is told through the descriptor `launcher`. Returns the exit code.
int RunJobProcess(const std::string& config, const std::string& secret, int launcher,
                  const std::stop_token& stop);

}  // namespace sluice::executor
