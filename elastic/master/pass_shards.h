#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "base/clock.h"
#include "elastic/ids.h"

namespace sluice::elastic {

// Which worker has which shards of a job that makes many passes: a worker keeps what it has made of
// their rows, and another one would have to make it again. Pure; not thread-safe.
class PassShards {
 public:
  void BeginPass(TimePoint now);
  // `worker` has done its part of the pass for the shard, which it has from now on.
  void Did(Incarnation worker, ShardId shard, TimePoint now);
  // It leaves, or was lost: others may have its shards.
  void Lose(Incarnation worker);

  static constexpr int kOwn = 0, kNobodys = 1, kAnothers = 2;
  // Which of the shards that wait `worker` should take first: its own first. nullopt: it leaves the
  // shard to the worker that has it, unless that one is late, or has more shards than this one
  // would have.
  std::optional<int> Cost(Incarnation worker, ShardId shard, TimePoint now) const;

 private:
  struct Worker {
    int64_t shards = 0;
    double seconds = 0;  // from the pass's beginning to its last shard
  };
  int64_t ShardsOf(Incarnation worker) const;

  std::map<ShardId, Incarnation> owners_;
  std::map<Incarnation, Worker> workers_;
  TimePoint begun_{};
};

}  // namespace sluice::elastic
