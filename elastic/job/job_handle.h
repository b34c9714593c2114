#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::elastic {

class ParameterFleet;

// What others may ask of a job while it runs on a fleet: an autoscaler, a person. Thread-safe.
class JobHandle {
 public:
  // Training goes on while the partitions move. FailedPrecondition: no such job is running.
  Status SetParameterServers(uint32_t servers);

  // By the job, while it runs; null when it ends.
  void Attach(ParameterFleet* parameters);

 private:
  Mutex mutex_;
  ParameterFleet* parameters_ GUARDED_BY(mutex_) = nullptr;
};

}  // namespace sluice::elastic
