#pragma once

#include <functional>
#include <stop_token>
#include <string>

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
  // elastic::TrainingJob::suspend.
  std::stop_token suspend = {};
  std::function<void()> suspended = {};
};

}  // namespace sluice::executor
