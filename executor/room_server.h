#pragma once

#include <memory>
#include <string>
#include <string_view>

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

// Where the gateway of a data source grants room to jobs in processes of their own: a name in the
// kernel's abstract namespace, the same for every gateway that one user starts on it. "": the URL
// is not one.
std::string RoomNameOf(std::string_view source_url);

}  // namespace sluice::executor
