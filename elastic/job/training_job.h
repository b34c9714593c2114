#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "elastic/master/progress.h"
#include "elastic/master/train_outcome.h"

namespace sluice::catalog {
class DataSource;
class DatasetSpec;
}  // namespace sluice::catalog

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

class JobCheckpoints;

// One training: what is trained, on which rows, and who hears of it. What it points to outlives the
// training.
struct TrainingJob {
  const plan::TrainPlan& plan;
  catalog::DataSource& source;
  const catalog::DatasetSpec& dataset;
  const catalog::DatasetSpec* validation = nullptr;  // the rows of validation.select; null: none
  const models::NetworkWeights* base = nullptr;      // where it begins; null: at fresh weights
  ProgressCallback progress = {};
  EventCallback events = {};
  std::stop_token stop = {};
  // Requested: the training ends soon, with the best that it has come to.
  std::stop_token finish = {};
  // Requested, of a job with `checkpoints`: one is written, and the training ends (Aborted) for
  // another one to go on from it. `suspended` is called when it has come to that.
  std::stop_token suspend = {};
  std::function<void()> suspended = {};
  // A worker keeps these snapshots alive, of what is trained and validated on; empty: nobody wants
  // to know, and they do not. On any thread, with each heartbeat.
  std::function<void(const std::string& snapshot, const std::string& validation_snapshot)> held =
      {};
  // Written while it runs, and where it goes on from; null: none.
  JobCheckpoints* checkpoints = nullptr;
};

}  // namespace sluice::elastic
