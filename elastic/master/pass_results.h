#pragma once

#include <map>
#include <string>
#include <utility>

#include "elastic/ids.h"

namespace sluice::elastic {

// What the workers of a job that makes passes (Master::Options::passes) have added up in the
// current pass, and how far the search that decides on the passes is. Pure; not thread-safe.
class PassResults {
 public:
  // The sums of a finished shard, as its worker reported them (TaskReport::sums).
  void Add(ShardId shard, std::string sums) { sums_[shard] = std::move(sums); }
  std::map<ShardId, std::string> Take() { return std::exchange(sums_, {}); }
  void Clear() { sums_.clear(); }
  // Progress of the search, from 0 to 1.
  void SetShareDone(double share) { share_done_ = share; }
  double share_done() const { return share_done_; }

 private:
  std::map<ShardId, std::string> sums_;
  double share_done_ = 0;
};

}  // namespace sluice::elastic
