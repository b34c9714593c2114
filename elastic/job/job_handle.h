#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::elastic {

class ParameterFleet;

// Requests to a job while it runs on a fleet, from an autoscaler or a person. Thread-safe.
class JobHandle {
 public:
  // Training continues while the partitions move. FailedPrecondition: no such job is running.
  Status SetParameterServers(uint32_t servers);

  // Called by the job while it runs; null when it ends.
  void Attach(ParameterFleet* parameters);

 private:
  Mutex mutex_;
  ParameterFleet* parameters_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace sluice::elastic
