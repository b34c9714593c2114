#pragma once

#include "base/status.h"

namespace sluice::server {

// Connections, databases and the pipes of processes: as many descriptors as the system allows, for
// this process and those that it starts. ResourceExhausted: too few for any training.
Status RaiseDescriptorLimit();

}  // namespace sluice::server
