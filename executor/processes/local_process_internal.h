#pragma once

#include <memory>
#include <optional>
#include <string>

#include <sys/types.h>

#include "base/clock.h"
#include "base/memory_group.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "executor/processes/descriptor_internal.h"

namespace sluice::executor {

// The input of ReadInheritedConfig, in memory that only the child can access; unlike a pipe it
// takes any size at once.
Result<Descriptor> MakeInherited(const std::string& config, const std::string& secret);

// A process that a LocalFleet has started, and the descriptors between the two. Nothing here
// blocks. Belongs to the fleet's thread, except for what the fleet's mutex guards.
struct LocalProcess {
  // Starts `binary` with the role's name as its only argument. Its death signal is tied to the
  // calling thread.
  static Result<std::unique_ptr<LocalProcess>> Spawn(const std::string& binary,
                                                     const elastic::ProcessSpec& spec);

  // Keeps the last lines of its standard error.
  void ReadError();

  std::string name;
  elastic::Role role = elastic::Role::kWorker;
  pid_t pid = -1;
  Descriptor pidfd, error;
  Descriptor life;  // a pipe by which the process notices that we have died
  std::string last_error;
  // As it was last seen alive: one that has ended is in none any more.
  std::optional<MemoryGroup> group;
  TimePoint started{0};
  TimePoint looked{0};  // at the group
  std::optional<TimePoint> kill_at;
  bool stopped = false;  // by us, so its exit is never a failure
};

}  // namespace sluice::executor
