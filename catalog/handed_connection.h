#pragma once

#include <string_view>

#include "base/status.h"

// How a process that has logged in for another (server/pgwire/ticket_desk) hands the connection
// over: as a descriptor, through the Unix socket on which the other has come. From then on the two
// ends talk directly. A connection that is encrypted cannot be handed over, as its keys stay where
// they were made. Thread-safe.
namespace sluice::catalog {

// Said of itself (ParameterStatus) by one that can: the other may ask, before anything else.
inline constexpr char kHandsOverParameter[] = "sluice.hands_over";
// The question, a message of the frontend's: type and length. Of no type that PostgreSQL has.
inline constexpr std::string_view kHandOverMessage("h\0\0\0\4", 5);

// `socket`: a Unix socket. Errors: it takes nothing now, or the other is gone.
Status SendDescriptor(int socket, int descriptor);

// What the other has sent, for which is not waited; the caller closes it. `socket`: as above.
// Errors: something else was sent, or nothing.
Result<int> ReceiveDescriptor(int socket);

}  // namespace sluice::catalog
