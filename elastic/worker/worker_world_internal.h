#pragma once

#include <deque>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "elastic/collective/all_reduce.h"
#include "elastic/collective/mesh.h"
#include "elastic/rpc/world.h"
#include "elastic/worker/worker.h"

namespace sluice::elastic {

// What a worker of an all-reduce job has beside its lanes: the world it is in, and where the
// parameters are.
struct Worker::World {
  World(const Replica& replica_in, Listener listener_in)
      : replica(replica_in), listener(std::move(listener_in)) {}

  Replica replica;
  Listener listener;
  std::vector<size_t> tensors;  // their sizes
  size_t dense_size = 0;
  std::vector<uint32_t> dimensions;

  std::unique_ptr<Mesh> mesh;  // none: not in a world
  std::unique_ptr<AllReduce> all_reduce;
  int64_t generation = 0;            // the last one whose outcome is known
  int64_t entered = 0;               // the last world that was tried
  bool failed = false;               // and was left in the middle
  Incarnation silent = 0;            // because of this member
  std::vector<Incarnation> members;  // of the world, by rank
  int64_t beginning = 0;
  int64_t closed = Rendezvous::kNoState;
  int64_t best = -1;  // closed steps of the weights that are kept
  std::string best_digest;
  bool meet = false;  // rank 0: the others are to be told that somebody waits
  RoundPosition position;

  std::string draft;  // that is being written
  std::future<Result<CheckpointManifest::File>> written;

  AllReduce::Sums sums;
  std::vector<LaneNote> notes;
  StepSum sum;
  std::vector<std::vector<float>> spare;  // memory for gradients

  WorldArrival Arrival() const;
  FlatGradient Scaled(const models::Gradient& gradient, const models::ParameterView& view,
                      double weight);
  void KeepMemory();
  // A failed collective: the world is left at once, so that the others notice too. Other errors
  // are answered.
  Status Leave(const Status& status);
  // Position and parameters as bytes, for a worker that joins: LoadState. The position comes first.
  std::string SavePosition() const;
  Result<std::deque<std::string>> SaveState() const;
  Status LoadState(ByteSource& state);
  // From a checkpoint, where there is one to begin with.
  Status Restore();
  // Copies the state in memory and writes it beside the training.
  Status BeginWriting(const std::string& draft);
  // Says so when it is written.
  Status TellWritten();
};

}  // namespace sluice::elastic
