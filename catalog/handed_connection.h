#pragma once

#include <string_view>

#include "base/status.h"

// How a process that has logged in to a server for another process (server/pgwire/ticket_desk)
// hands the connection over: as a descriptor, through the Unix socket between them. From then on
// that process and the server talk directly. An encrypted connection cannot be handed over, because
// its keys are known only where it was opened. Thread-safe.
namespace sluice::catalog {

// The ParameterStatus by which the first process offers it; the other may request it at once.
inline constexpr char kHandsOverParameter[] = "sluice.hands_over";
// The request, a frontend message of type and length; PostgreSQL has no such type.
inline constexpr std::string_view kHandOverMessage("h\0\0\0\4", 5);

// `socket`: a Unix socket. Errors: it accepts nothing now, or the other end is closed.
Status SendDescriptor(int socket, int descriptor);

// The descriptor that was sent, without waiting for it; the caller closes it. `socket`: as above.
// Errors: something else was sent, or nothing.
Result<int> ReceiveDescriptor(int socket);

}  // namespace sluice::catalog
