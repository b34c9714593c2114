#pragma once

#include <functional>

#include "base/status.h"

namespace sluice::catalog {

// Waits up to five seconds for an advisory lock of PostgreSQL. Any role can hold any of them,
// perhaps to hold up others, so after that time the caller continues without it: it must only keep
// statements from getting in each other's way. `take` tries to take the lock, and returns whether
// it has. Only its errors are returned.
Status AwaitAdvisoryLock(const std::function<Result<bool>()>& take);

}  // namespace sluice::catalog
