#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::executor {

class SlotArbiter;

// Grants room to jobs in processes of their own: those that this gateway started, and those of an
// earlier gateway. If another gateway holds the name, this one takes over as soon as that one ends.
// Thread-safe.
class RoomServer {
 public:
  // `name`: RoomNameOf. `arbiter` outlives it.
  static Result<std::unique_ptr<RoomServer>> Start(const std::string& name, SlotArbiter& arbiter);
  virtual ~RoomServer() = default;  // the jobs keep what they have
};

// Where the gateway of a data source grants room to jobs in processes of their own: a name in the
// kernel's abstract namespace, the same for all gateways that one user starts on that source. "":
// not a URL.
std::string RoomNameOf(std::string_view source_url);

}  // namespace sluice::executor
