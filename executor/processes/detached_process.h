#pragma once

#include <string>

#include "base/status.h"
#include "executor/processes/packets_internal.h"

namespace sluice::executor {

// Starts `binary` ("": this one), which `ps` shows as `title`, with `role` as its only argument, in
// a session of its own: it survives this process and its terminal, and has no parent to wait for it
// (BecomeDetached). Its standard streams are /dev/null, so that readers of this process's streams
// do not wait for it. Descriptor 3 is as for RunChildProcess, 4 the other end of the returned
// connection. Without `inherits_password`, PGPASSWORD is not in its environment.
Result<PacketSocket> StartDetached(const std::string& binary, const std::string& title,
                                   const std::string& role, const std::string& config,
                                   const std::string& secret, bool inherits_password);

// In the started process, before any thread starts: detaches from the process that started it.
void BecomeDetached();

}  // namespace sluice::executor
