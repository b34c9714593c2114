#pragma once

#include <string>

#include "base/status.h"
#include "executor/processes/packets_internal.h"

namespace sluice::executor {

// Starts `binary` ("": this one) with `role` as its only argument, in a session of its own: it
// lives on when this process and its terminal go, and is nobody's child (BecomeDetached). Its
// standard streams are /dev/null, so that nobody who reads this process's waits for it. Descriptor
// 3 is as RunChildProcess has it, 4 the other end of the connection that is returned.
Result<PacketSocket> StartDetached(const std::string& binary, const std::string& role,
                                   const std::string& config, const std::string& secret);

// The other end, before any thread is started: leaves whoever has started the process.
void BecomeDetached();

}  // namespace sluice::executor
