#pragma once

#include <cstddef>

#include "base/status.h"

namespace sluice::elastic {

// The largest message between two processes of a job: a server's slice of the dense tensors both
// ways. Larger models need more servers.
inline constexpr int kMaxMessageBytes = 1 << 29;
// What is around such a message where it is sent on to a replica.
inline constexpr int kEnvelopeBytes = 1 << 20;

// ResourceExhausted: names the message, which is too large to be sent.
Status TooLarge(const char* what, size_t bytes);

}  // namespace sluice::elastic
