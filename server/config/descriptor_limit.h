#pragma once

#include "base/status.h"

namespace sluice::server {

// Raises the limit of file descriptors (connections, databases, pipes) as far as the system allows,
// for this process and its children. ResourceExhausted: too few for any training.
Status RaiseDescriptorLimit();

}  // namespace sluice::server
