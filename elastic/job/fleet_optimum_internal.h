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
// own, beside the master; each pass that it asks for is an epoch of the master's queue, whose
// shards the workers add up. Shard after shard they are added here, in the shards' order, so that
// the weights are those of one process, however many workers there are and whoever of them died.
// Thread-safe but for Start, Stop and found.
class FleetOptimum {
 public:
  // Both outlive it.
  FleetOptimum(MasterHost& host, MasterServer& door) : host_(host), door_(door) {}
  ~FleetOptimum() { Stop(); }

  // Returns when workers may begin: they can be told what the first pass is.
  Status Start(const models::ModelSpec& spec);
  // The pass's sums are there (Master::Action::kPassDone).
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
  std::unique_ptr<models::LinearSums> nothing_;  // what no rows add up to
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
