#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "executor/processes/room.h"

namespace sluice::executor {

// The room of the gateways that come and go, for the job of this process. While none answers the
// job keeps what it has; one that has nothing yet takes as many workers as it may have and the
// machine has slots for. One job at a time. Thread-safe.
class RoomLink {
 public:
  // `name`: RoomNameOf. `size`: what there is where no gateway answers.
  static Result<std::unique_ptr<Room>> Make(const std::string& name, const RoomSize& size);
};

}  // namespace sluice::executor
