#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "elastic/seat.h"
#include "models/model.h"

namespace sluice::catalog {
class DataSource;
class Dataset;
class DatasetSpec;
}  // namespace sluice::catalog

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::elastic {

class Fleet;
class JobCheckpoints;
class JobHandle;
class JournalStore;

struct Progress {
  int64_t rows_done = 0;   // training rows committed, all epochs
  int64_t rows_read = 0;   // from the database, again and again where they are not kept
  int64_t rows_total = 0;  // estimated rows x epochs
  double rows_per_second = 0;
  uint32_t epoch = 0;  // current, from 1
  uint32_t epochs = 0;
  double loss = 0;  // mean over the rows of the last second or so
  std::vector<std::pair<std::string, double>> metrics;  // last evaluation
  int workers = 0;
  double seconds_left = 0;
};

// At most once a second while a job runs, once at each epoch's end, and once when it fails or is
// cancelled; from one thread at a time.
using ProgressCallback = std::function<void(const Progress&)>;

// The event that somebody waits for the database; its detail is for whoever waits for the job.
inline constexpr char kDatabaseWaits[] = "database_waits";

struct EventCallback {
  std::function<void(const std::string& kind, const std::string& detail)> on_event;
};

struct TrainOutcome {
  models::NetworkWeights weights;
  std::vector<std::pair<std::string, double>>
      metrics;                 // on the validation rows; empty without a split
  double loss = 0;             // mean training loss of the last epoch
  uint32_t epochs = 0;         // really run (early stopping)
  int64_t rows_per_epoch = 0;  // training rows; validation rows not counted
  int64_t validation_rows = 0;
  int64_t rows_trained = 0;  // rows_per_epoch x epochs, by the ledger
  int64_t rows_read = 0, rows_retried = 0, rows_skipped = 0;
};

// Trains a network in this process: master, one worker and the parameter shard as direct calls.
// `checkpoints`: written while it runs, and where it goes on from; null: none.
Result<TrainOutcome> TrainInProcess(const plan::TrainPlan& plan, catalog::DataSource& source,
                                    const catalog::DatasetSpec& dataset,
                                    const catalog::DatasetSpec* validation,
                                    const models::NetworkWeights* base,
                                    const ProgressCallback& progress, const EventCallback& events,
                                    std::stop_token stop, JobCheckpoints* checkpoints = nullptr);

// What a job needs to outlive its masters.
struct Succession {
  // Holds what the masters before this one knew; nullptr: a job ends with its master.
  JournalStore* journal = nullptr;
  // Stores the model, while the processes that have its weights live: if this master dies
  // meanwhile, the next one still can. Called once, when the journal says that training has
  // succeeded.
  std::function<Status(const TrainOutcome&)> commit;
  // A master before this one has done so: nothing is started, and the outcome, without weights, is
  // what the journal says.
  bool committed = false;
};

// Runs the job's master in this process and its workers and parameter servers on `fleet`.
// Returns when every row has been trained `epochs` times by the ledger, or with the first error.
// `seat` may be just the job's name.
// `handle` works while it runs. With `checkpoints`, a job that has lost its parameters goes back to
// the newest one, with all its processes, and on from there.
Result<TrainOutcome> TrainOnFleet(
    const plan::TrainPlan& plan, catalog::DataSource& source, Fleet& fleet, const MasterSeat& seat,
    const catalog::DatasetSpec& dataset, const catalog::DatasetSpec* validation,
    const models::NetworkWeights* base, const ProgressCallback& progress,
    const EventCallback& events, std::stop_token stop, JobHandle* handle = nullptr,
    const Succession& succession = {}, JobCheckpoints* checkpoints = nullptr);

// The life of a worker and of a parameter server process: returns the exit code.
// `config` and `secret` are what ProcessSpec carried.
int RunWorkerProcess(const std::string& config, const std::string& secret, std::stop_token stop);
int RunParameterServerProcess(const std::string& config, std::stop_token stop);

}  // namespace sluice::elastic
