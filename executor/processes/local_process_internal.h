#pragma once

#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "executor/processes/descriptor_internal.h"

namespace sluice::executor {

// What ReadInheritedConfig reads, in memory that only the child can reach; unlike a pipe it takes
// any size at once.
Result<Descriptor> MakeInherited(const std::string& config, const std::string& secret);

// A process that a LocalFleet has started, and the descriptors between the two. Nothing here
// blocks. Belongs to the fleet's thread, but for what the fleet's mutex guards.
struct LocalProcess {
  // Starts `binary` with the role's name as its only argument. Its death signal is tied to the
  // thread that calls.
  static Result<std::unique_ptr<LocalProcess>> Spawn(const std::string& binary,
                                                     const elastic::ProcessSpec& spec);

  // Keeps the last lines of what it wrote to standard error.
  void ReadError();

  std::string name;
  elastic::Role role = elastic::Role::kWorker;
  pid_t pid = -1;
  Descriptor pidfd, error;
  Descriptor life;  // a pipe that tells the process that we have died
  std::string last_error;
  std::optional<TimePoint> kill_at;
  bool stopped = false;  // by us: whatever its exit looks like, it is no failure
};

}  // namespace sluice::executor
