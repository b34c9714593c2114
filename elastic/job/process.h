#pragma once

#include <stop_token>
#include <string>

#include "base/status.h"

namespace sluice::catalog {
class DataSource;
}

namespace sluice::elastic {

// Runs a worker process that has opened its database: joins the job that `config` (a serialised
// ProcessConfig) names and works until it is over. Cancelled: stopped, or given up by the master.
Status RunWorker(const std::string& config, catalog::DataSource& source, std::stop_token stop);

// Runs a parameter server process: serves its partitions until `stop`, or until the job is over.
Status RunParameterServer(const std::string& config, std::stop_token stop);

// The whole life of a worker or parameter server process: returns the exit code. `config` and
// `secret` are those of ProcessSpec.
int RunWorkerProcess(const std::string& config, const std::string& secret, std::stop_token stop);
int RunParameterServerProcess(const std::string& config, std::stop_token stop);

}  // namespace sluice::elastic
