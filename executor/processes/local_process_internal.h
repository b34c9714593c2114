#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "executor/processes/descriptor_internal.h"
#include "executor/processes/frames_internal.h"

namespace sluice::executor {

// A process that a LocalFleet has started, and the descriptors between the two. Nothing here
// blocks. Belongs to the fleet's thread, but for what the fleet's mutex guards.
struct LocalProcess {
  // Starts `binary` with the role's name as its only argument. Its death signal is tied to the
  // thread that calls.
  static Result<std::unique_ptr<LocalProcess>> Spawn(const std::string& binary,
                                                     const elastic::ProcessSpec& spec);

  // Keeps the last lines of what it wrote to standard error.
  void ReadError();
  // Passes on each whole message that has arrived.
  void ReadMessages(const std::function<void(const std::string&)>& on_message);
  // Sends what fits of `unsent`.
  void WriteMessages();

  std::string name;
  elastic::Role role = elastic::Role::kWorker;
  pid_t pid = -1;
  Descriptor pidfd, error, channel;
  std::string last_error;
  FrameReader received;
  std::string unsent;  // guarded by the fleet's mutex
  std::optional<TimePoint> kill_at;
  bool stopped = false;  // by us: whatever its exit looks like, it is no failure
};

}  // namespace sluice::executor
