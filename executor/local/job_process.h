#pragma once

#include <stop_token>
#include <string>

namespace sluice::executor {

// `sluice job`: runs a train, predict or evaluate statement in a process of its own, from its plan
// to its end. It has its own database sessions, its own fleet and the job's row, and asks the
// process that serves the room for workers. `config` and `secret` are a JobConfig and JobSecrets;
// news is sent through the descriptor `launcher`. Returns the exit code.
int RunJobProcess(const std::string& config, const std::string& secret, int launcher,
                  const std::stop_token& stop);

}  // namespace sluice::executor
