#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "elastic/fleet/fleet.h"

namespace sluice::catalog {
class DatasetSpec;
}

namespace sluice::elastic {
class Fleet;
class JournalStore;
struct JobEndpoint;
}  // namespace sluice::elastic

namespace sluice::executor {

// Where a job's processes and its master run, the journal of its masters, and the data they read,
// which another process that outlives this master keeps open.
struct TrainingFleet {
  elastic::Fleet& fleet;
  const elastic::JobEndpoint& endpoint;
  elastic::JournalStore& journal;
  const catalog::DatasetSpec& dataset;
  const catalog::DatasetSpec* validation = nullptr;
  // elastic::TrainingJob::held.
  std::function<void(const std::string& node, const std::string& snapshot,
                     const std::string& validation_snapshot)>
      held = {};
  // elastic::TrainingJob::used.
  std::function<void(elastic::Role role, int64_t peak_bytes)> used = {};
  // Whether this master may bring the job to an end; false: what it belongs to is gone, and it is
  // for another process to do so. Empty: it may.
  std::function<bool()> wanted = {};
  // elastic::TrainingJob::suspend.
  std::stop_token suspend = {};
  std::function<void()> suspended = {};
};

// Unavailable if it is not.
inline Status CheckWanted(const TrainingFleet& place) {
  return !place.wanted || place.wanted()
             ? OkStatus()
             : Unavailable("what the job's master belongs to is gone, or has another master");
}

}  // namespace sluice::executor
