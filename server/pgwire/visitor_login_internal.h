#pragma once

#include <memory>
#include <vector>

#include "server/pgwire/backend_connection_internal.h"
#include "server/pgwire/desk_internal.h"
#include "server/pgwire/scram_verifier.h"

namespace sluice::server::pgwire {

// Logs a desk's visitor in to the server with keys, and hands the connection over
// (catalog/handed_connection.h); where that cannot be, or is not asked for, passes on what the two
// say. Returns at once. `buffer`: of the I/O thread, to which all belongs; outlives the visitor, as
// what `backend` was made with does. `presence`: held as long as the visitor is there.
void LogVisitorIn(Visitor visitor, ScramKeys keys, std::shared_ptr<BackendConnection> backend,
                  std::vector<char>& buffer, std::shared_ptr<const void> presence);

}  // namespace sluice::server::pgwire
