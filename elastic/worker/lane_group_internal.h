#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "elastic/rpc/links.h"
#include "elastic/worker/lease.h"
#include "models/model.h"

namespace sluice::elastic {

// The batches of several lanes at one step, whose parameters are pulled and whose gradients are
// pushed together. Its memory is reused for the next step.
class LaneGroup {
 public:
  struct Lane {
    TaskId task;
    BatchIdentity identity;
    models::FeatureBatch batch;
    models::ParameterView view;
    models::Gradient gradient;
    models::LossSum loss;
  };

  // The most bytes that the lanes of one exchange push, unless a single lane exceeds it.
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  explicit LaneGroup(models::Network& network);

  void Clear() { count_ = 0; }
  bool empty() const { return count_ == 0; }
  bool full() const { return count_ > 0 && bytes_ >= kMaxBytes; }
  // Assembles the lane's batch.
  void Add(const Lease& lease, BatchIndex batch);
  bool Holds(TaskId task) const;
  size_t size() const { return count_; }
  Lane& lane(size_t i) { return *lanes_[i]; }
  const Lane& lane(size_t i) const { return *lanes_[i]; }

  // The pull for all lanes together, with each row once; afterwards Scatter gives each its part.
  models::ParameterView* CombinedView();
  void Scatter();
  // Their pushes; the pointers are valid until the group changes.
  std::vector<BatchPush> Pushes() const;

 private:
  models::Network* network_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // the first count_; the others are kept for reuse
  size_t count_ = 0;
  size_t dense_bytes_ = 0;
  size_t bytes_ = 0;
  models::ParameterView combined_;  // of several lanes: ids ascending
};

}  // namespace sluice::elastic
