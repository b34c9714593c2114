#include "elastic/transport/message_limits.h"

#include <fmt/core.h>

namespace sluice::elastic {

Status TooLarge(const char* what, size_t bytes) {
  return ResourceExhausted(fmt::format("{} of {} bytes between two processes of a job; {} are "
                                       "allowed",
                                       what, bytes, kMaxMessageBytes))
      .Hint("with engine.num_ps each parameter server has a smaller part of the model");
}

}  // namespace sluice::elastic
