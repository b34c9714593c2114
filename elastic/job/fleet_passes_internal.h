#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/master/master_host.h"
#include "elastic/master/master_service.h"
#include "models/model.h"
#include "models/pass_training.h"

namespace sluice::elastic {

struct TrainingJob;

// A model that is found by passes, on a fleet: boosted trees, and a linear model's optimum. The
// search runs on a thread of its own, next to the master; each pass that it requests is an epoch of
// the master's queue, whose shards the workers add up. The model is that of a single process,
// regardless of the number of workers and of lost ones. Thread-safe but for Start, Stop and found.
class FleetPasses {
 public:
  // All outlive this.
  FleetPasses(const TrainingJob& job, MasterHost& host, MasterServer& door)
      : job_(job), host_(host), door_(door) {}
  ~FleetPasses() { Stop(); }

  // Returns when the first pass is known, so that workers may begin.
  void Start();
  // Of trees (Master::Action::kCheckpoint). On any thread.
  void WriteCheckpoint();
  // The sums of the pass are complete (Master::Action::kPassDone).
  void OnPassDone();
  void Stop();
  // When the master has succeeded.
  struct Found {
    models::NetworkWeights weights;  // of a linear model
    std::string trees;               // of trees, as they are stored
    double loss = 0;
    uint32_t steps = 0;  // of the search; rounds of trees
    uint32_t best = 0;   // the round of these trees, if others have been trained
  };
  Found& found() { return found_; }

 private:
  void Search();
  Status FindOptimum();
  Status GrowTrees();
  Result<std::vector<std::string>> Run(const models::Pass& pass);

  const TrainingJob& job_;
  MasterHost& host_;
  MasterServer& door_;
  Found found_;
  Epoch epoch_ = kNoEpoch;            // of the last pass
  std::atomic<uint64_t> judges_ = 0;  // checksum of the rows that judge, once they have been read
  std::stop_source stop_;

  Mutex mutex_;
  std::condition_variable changed_;
  bool offered_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::optional<std::map<ShardId, std::string>> sums_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses the others
};

}  // namespace sluice::elastic
