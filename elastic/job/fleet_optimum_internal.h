#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/master/master_host.h"
#include "elastic/master/master_service.h"
#include "models/linear_optimum.h"

namespace sluice::elastic {

// A linear model's optimum on a fleet. The search (models::LinearOptimum) runs on a thread of its
// own, next to the master; each pass that it requests is an epoch of the master's queue, whose
// shards the workers sum up. The sums of the shards are added here in shard order, so that the
// weights are those of a single process, regardless of the number of workers and of lost ones.
// Thread-safe but for Start, Stop and found.
class FleetOptimum {
 public:
  // Both outlive this.
  FleetOptimum(MasterHost& host, MasterServer& door) : host_(host), door_(door) {}
  ~FleetOptimum() { Stop(); }

  // Returns when the first pass is known, so that workers may begin.
  Status Start(const models::ModelSpec& spec);
  // The sums of the pass are complete (Master::Action::kPassDone).
  void OnPassDone();
  void Stop();
  // When the master has succeeded.
  const models::LinearOptimum::Found& found() const { return found_; }

 private:
  void Search();
  Result<std::vector<double>> Sum(const models::LinearPass& pass);

  MasterHost& host_;
  MasterServer& door_;
  std::unique_ptr<models::LinearOptimum> search_;
  std::unique_ptr<models::LinearSums> nothing_;  // the sums of no rows
  models::LinearOptimum::Found found_;
  Epoch epoch_ = kNoEpoch;  // of the last pass

  Mutex mutex_;
  std::condition_variable changed_;
  bool offered_ GUARDED_BY(mutex_) = false;
  bool stopped_ GUARDED_BY(mutex_) = false;
  std::optional<std::map<ShardId, std::string>> sums_ GUARDED_BY(mutex_);
  std::jthread thread_;  // last: it uses the others
};

}  // namespace sluice::elastic
