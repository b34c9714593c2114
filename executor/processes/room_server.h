#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace sluice::executor {

class SlotArbiter;

// Grants room to the jobs that live in processes of their own: those that it has started, and those
// that an earlier gateway has. Where another gateway has the name, this one takes over as soon as
// that one goes. Thread-safe.
class RoomServer {
 public:
  // `name`: RoomNameOf. `arbiter` outlives it.
  static Result<std::unique_ptr<RoomServer>> Start(const std::string& name, SlotArbiter& arbiter);
  virtual ~RoomServer() = default;  // the jobs keep what they have
};

}  // namespace sluice::executor
