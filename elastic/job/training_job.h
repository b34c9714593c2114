#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "elastic/fleet/fleet.h"
#include "elastic/master/progress.h"
#include "elastic/master/train_outcome.h"

namespace sluice {
class ProfileSum;
}

namespace sluice::catalog {
class DataSource;
class DatasetSpec;
}  // namespace sluice::catalog

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

class JobCheckpoints;

// One training: what is trained, on which rows, and where it reports. Everything that it points to
// must outlive the training.
struct TrainingJob {
  const plan::TrainPlan& plan;
  catalog::DataSource& source;
  const catalog::DatasetSpec& dataset;
  const catalog::DatasetSpec* validation = nullptr;  // the rows of validation.select; null: none
  const models::NetworkWeights* base = nullptr;      // the weights to start from; null: initial
                                                     // weights
  ProgressCallback progress = {};
  EventCallback events = {};
  std::stop_token stop = {};
  // When requested, the training ends soon, with the best result so far.
  std::stop_token finish = {};
  // When requested, for a job with `checkpoints`: a checkpoint is written, and the training ends
  // (Aborted) so that another one can resume from it. `suspended` is called at that point.
  std::stop_token suspend = {};
  std::function<void()> suspended = {};
  // Called with a worker's node and the snapshots, of the training and the validation rows, that it
  // keeps alive; empty: workers keep none. On any thread, with each heartbeat.
  std::function<void(const std::string& node, const std::string& snapshot,
                     const std::string& validation_snapshot)>
      held = {};
  // Called with how many bytes a worker or parameter server has had resident at most. On any
  // thread, with each heartbeat.
  std::function<void(Role role, int64_t peak_bytes)> used = {};
  unsigned processors = 0;  // that it may use in this process; 0: all of the machine's
  // Receives the seconds of every thread and process that works on it, by phase; null: nothing.
  ProfileSum* profile = nullptr;
  // Where checkpoints are written, and from which one it resumes; null: none.
  JobCheckpoints* checkpoints = nullptr;
};

}  // namespace sluice::elastic
