#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "executor/processes/room.h"

namespace sluice::executor {

// The room for this process's job while gateways come and go. While none answers, the job keeps
// what it has; a job that has nothing yet takes as many workers as it may have and the machine has
// slots for. One job at a time. Thread-safe.
class RoomLink {
 public:
  // `name`: RoomNameOf. `size`: the capacity when no gateway answers.
  static Result<std::unique_ptr<Room>> Make(const std::string& name, const RoomSize& size);
};

}  // namespace sluice::executor
