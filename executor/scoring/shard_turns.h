#pragma once

#include <condition_variable>
#include <optional>

#include "base/mutex.h"
#include "elastic/ids.h"

namespace sluice::executor {

// Hands the shards of a dataset to workers that process them side by side, and lets the workers
// deliver their rows in the dataset's order: one after another, each when all shards before its own
// have been delivered. Thread-safe.
class ShardTurns {
 public:
  explicit ShardTurns(int shards) : shards_(shards) {}

  // The next shard to process, in ascending order; nullopt: there are none, or it was ended.
  std::optional<elastic::ShardId> Take() EXCLUDES(mutex_);
  bool IsTurnOf(elastic::ShardId shard) EXCLUDES(mutex_);
  // Waits for the shard's turn. False: it was ended.
  bool Await(elastic::ShardId shard) EXCLUDES(mutex_);
  // The shard, whose turn it is, has been delivered.
  void Pass(elastic::ShardId shard) EXCLUDES(mutex_);
  // Waits until all shards have been delivered, or it was ended.
  void AwaitAll() EXCLUDES(mutex_);
  // No further shard is taken, and nobody waits for a turn.
  void End() EXCLUDES(mutex_);

 private:
  const int shards_;
  Mutex mutex_;
  std::condition_variable changed_;
  int taken_ GUARDED_BY(mutex_) = 0;
  int delivered_ GUARDED_BY(mutex_) = 0;
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::executor
