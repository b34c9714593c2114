#pragma once

#include <stop_token>
#include <string>

#include "base/status.h"
#include "server/statements/source_pool.h"

namespace sluice::executor {
struct TrainingJobRequest;
}

namespace sluice::server {

// The source of a TrainingJob as a login: a role of its own at the server of the gateway, which
// keeps the catalog for it. `own_url`, `own_role`: the gateway's login. 28000: it is that one, or
// names no role. kInvalidArgument: it is another server's. Errors begin with "spec.source" and
// repeat nothing of the Secret.
Result<Login> TrainingJobLogin(const executor::TrainingJobRequest& request,
                               const std::string& own_url, const std::string& own_role);

// Logs in; errors as above, with the SQLSTATE of the reason. `stop` ends the waiting for a server.
Result<SourcePool::Lease> LogInFor(const executor::TrainingJobRequest& request, SourcePool& sources,
                                   const std::stop_token& stop);

}  // namespace sluice::server
