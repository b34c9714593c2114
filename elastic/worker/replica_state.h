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

// The data that each worker of an all-reduce has a copy of: all parameters, and the position of the
// training. The same on every member that has closed the same steps. Serialised, it is sent to a
// member that joins, and is a checkpoint's file; the position comes first. One thread.
class ReplicaState {
 public:
  // The replica's shard and the network must outlive it.
  ReplicaState(const Worker::Replica& replica, const models::Network& network)
      : replica_(replica), network_(network) {}

  // Fills in its part of the message to the master.
  void Describe(WorldArrival* arrival) const;
  // Aborted: the training has begun again, and this worker's weights belong to the previous
  // beginning.
  Status BelongTo(int64_t beginning);
  // The initial state: the checkpoint, if there is one, else initial parameters.
  Status Begin();
  Result<std::deque<std::string>> Save() const;
  Status Load(std::deque<std::string> pieces);

  // Applies the sum of the open step, whose first lane is `first`. It changes the parameters if
  // there was a gradient.
  Status Apply(const StepSum& sum, const Task& first);
  // The weights after this step are the best so far. The replica has them now, or has kept them
  // before.
  Status Keep(int64_t step);
  Result<models::NetworkWeights> Export() const;

  // Copies the state in memory and writes it during the training.
  Status BeginWriting(const std::string& draft);
  // Reports when it is written.
  Status ReportWritten();

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
  int64_t kept_ = -1;                      // closed steps of the kept weights
  std::string kept_digest_;
  std::string draft_;  // being written
  std::future<Result<CheckpointManifest::File>> written_;
};

}  // namespace sluice::elastic
