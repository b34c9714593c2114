#include "elastic/master/pass_shards.h"

#include <utility>

namespace sluice::elastic {
namespace {

// A worker that has done its own part in a third of this time, and has waited this long, helps one
// that has not.
constexpr double kOwnPartsBeforeHelp = 3;
constexpr double kSecondsBeforeHelp = 1;

}  // namespace

void PassShards::BeginPass(TimePoint now) {
  begun_ = now;
}

void PassShards::Did(Incarnation worker, ShardId shard, TimePoint now) {
  const auto [owner, fresh] = owners_.try_emplace(shard, worker);
  Worker& one = workers_[worker];
  one.seconds = SecondsBetween(begun_, now);
  if (fresh) {
    ++one.shards;
  } else if (owner->second != worker) {
    --workers_[owner->second].shards;
    ++one.shards;
    owner->second = worker;
  }
}

void PassShards::Lose(Incarnation worker) {
  std::erase_if(owners_, [worker](const auto& shard) { return shard.second == worker; });
  workers_.erase(worker);
}

int64_t PassShards::ShardsOf(Incarnation worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? 0 : found->second.shards;
}

std::optional<int> PassShards::Cost(Incarnation worker, ShardId shard, TimePoint now) const {
  const auto owner = owners_.find(shard);
  if (owner == owners_.end()) {
    return kNobodys;
  }
  if (owner->second == worker) {
    return kOwn;
  }
  const bool balances = ShardsOf(worker) + 1 < ShardsOf(owner->second);
  const auto own = workers_.find(worker);
  const bool late =
      own != workers_.end() &&
      SecondsBetween(begun_, now) > kSecondsBeforeHelp + kOwnPartsBeforeHelp * own->second.seconds;
  return balances || late ? std::optional(kAnothers) : std::nullopt;
}

}  // namespace sluice::elastic
