#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"

namespace sluice::catalog {
class JobStore;
}
namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// The memory that a job's processes have used, as metrics of the job: the largest of each role, in
// bytes. Thread-safe.
class UsedMemory {
 public:
  using Record = std::function<void(const std::string& metric, double bytes)>;
  explicit UsedMemory(Record record) : record_(std::move(record)) {}

  // A process has had so much resident at most. Recorded where it is a tenth more than before.
  void Hear(elastic::Role role, int64_t peak_bytes) EXCLUDES(mutex_);

 private:
  const Record record_;
  Mutex mutex_;
  std::map<elastic::Role, int64_t> recorded_ GUARDED_BY(mutex_);
};

// Raises the plan's estimates to what the processes of the last three trainings of its model used.
// Fails as the store does.
Status RaiseEstimates(catalog::JobStore& jobs, plan::TrainPlan& plan);

}  // namespace sluice::executor
