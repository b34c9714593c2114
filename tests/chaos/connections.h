#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "catalog/data_source.h"

namespace sluice::chaos {

// The local ports of a process's TCP connections.
std::vector<int> PortsOf(pid_t pid);

// Ends all connections of a process on this machine to the PostgreSQL server of `source`, as a
// pooler's time-out or an administrator would; returns their number.
Result<int> TerminateConnections(pid_t pid, catalog::DataSource& source);

}  // namespace sluice::chaos
