#pragma once

#include <string>

namespace sluice::elastic {

class ProcessConfig;
struct JobEndpoint;

// What every process of the job knows from its start: by what the job's processes recognise each
// other, and where its master is found.
ProcessConfig AccessOf(const JobEndpoint& endpoint, const std::string& master_address);

// The same, serialized, for processes that fetch the rest from the master
// (JobEndpoint::configures), at `endpoint.found_at`. What is a process's own is added by its pod.
std::string AccessConfig(const JobEndpoint& endpoint);

}  // namespace sluice::elastic
