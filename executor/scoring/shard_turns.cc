#include "executor/scoring/shard_turns.h"

#include "base/check.h"

namespace sluice::executor {

std::optional<elastic::ShardId> ShardTurns::Take() {
  const MutexLock lock(mutex_);
  if (ended_ || taken_ == shards_) {
    return std::nullopt;
  }
  return elastic::ShardId(taken_++);
}

bool ShardTurns::IsTurnOf(elastic::ShardId shard) {
  const MutexLock lock(mutex_);
  return !ended_ && elastic::ShardId(delivered_) == shard;
}

bool ShardTurns::Await(elastic::ShardId shard) {
  MutexLock lock(mutex_);
  changed_.wait(lock.native(), [this, shard]() REQUIRES(mutex_) {
    return ended_ || elastic::ShardId(delivered_) == shard;
  });
  return !ended_;
}

void ShardTurns::Pass(elastic::ShardId shard) {
  const MutexLock lock(mutex_);
  SLUICE_CHECK(elastic::ShardId(delivered_) == shard, "a shard is delivered in its turn");
  ++delivered_;
  changed_.notify_all();
}

void ShardTurns::AwaitAll() {
  MutexLock lock(mutex_);
  changed_.wait(lock.native(),
                [this]() REQUIRES(mutex_) { return ended_ || delivered_ == shards_; });
}

void ShardTurns::End() {
  const MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace sluice::executor
