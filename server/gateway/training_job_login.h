#pragma once

#include <string>

#include "base/status.h"
#include "server/statements/source_pool.h"

namespace sluice::executor {
struct TrainingJobRequest;
}

namespace sluice::server {

// The source of a TrainingJob as a login: a role of its own, at the gateway's own server `own` (a
// URL), whose catalog the gateway writes. 28000: it is the gateway's login, or names no role.
// kInvalidArgument: it is another server's. Errors begin with "spec.source" and repeat nothing of
// the Secret.
Result<Login> TrainingJobLogin(const executor::TrainingJobRequest& request, const std::string& own);

// Logs in; errors as above, with the SQLSTATE of the reason.
Result<SourcePool::Lease> LogInFor(const executor::TrainingJobRequest& request,
                                   const std::string& own, SourcePool& sources);

}  // namespace sluice::server
