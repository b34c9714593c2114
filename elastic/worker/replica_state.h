#pragma once

#include <cstdint>
#include <deque>
#include <future>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/collective/all_reduce.h"
#include "elastic/rpc/world.h"
#include "elastic/storage/byte_parts.h"
#include "elastic/storage/checkpoint.h"
#include "elastic/worker/worker.h"
#include "models/model.h"

namespace sluice::elastic {

// What each worker of an all-reduce has a copy of: all parameters, and where the training is. The
// same on every member that has closed the same steps. As bytes it is what a member that joins is
// sent, and a checkpoint's file; the position comes first. One thread.
class ReplicaState {
 public:
  // The replica's shard and the network must outlive it.
  ReplicaState(const Worker::Replica& replica, const models::Network& network)
      : replica_(replica), network_(network) {}

  // Its part of what the master is told.
  void Describe(WorldArrival* arrival) const;
  // Aborted: the training has begun again, and this worker's weights are of the one before.
  Status BelongTo(int64_t beginning);
  // As every worker begins: with the checkpoint, where there is one, else with fresh parameters.
  Status Begin();
  Result<std::deque<std::string>> Save() const;
  Status Load(std::deque<std::string> pieces);

  // The sum of the open step, of which `first` is the first lane. It changes the parameters where
  // there was a gradient.
  Status Apply(const StepSum& sum, const Task& first);
  // The weights after this step are the best so far. They are those that the replica has now, or
  // has kept before.
  Status Keep(int64_t step);
  Result<models::NetworkWeights> Export() const;

  // Copies the state in memory and writes it beside the training.
  Status BeginWriting(const std::string& draft);
  // Says so when it is written.
  Status TellWritten();

  int64_t closed() const { return closed_; }
  RoundPosition position;

 private:
  std::string SavePosition() const;
  Status Read(ByteSource& state);
  Status DigestKept();

  const Worker::Replica replica_;
  const models::Network& network_;
  int64_t beginning_ = 0;
  int64_t closed_ = Rendezvous::kNoState;  // steps
  int64_t kept_ = -1;                      // closed steps of the weights that are kept
  std::string kept_digest_;
  std::string draft_;  // that is being written
  std::future<Result<CheckpointManifest::File>> written_;
};

}  // namespace sluice::elastic
