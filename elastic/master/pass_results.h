#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "elastic/ids.h"

namespace sluice::elastic {

// What the workers of a job that makes passes (Master::Options::passes) have added up in the
// current pass, and how far the search that decides on the passes is. Pure; not thread-safe.
class PassResults {
 public:
  // The sums of a finished shard, and of those merged with it, as their worker reported them
  // (TaskReport::sums).
  void Add(ShardId shard, std::string sums) { sums_[shard] = std::move(sums); }
  std::map<ShardId, std::string> Take() { return std::exchange(sums_, {}); }
  void Clear() { sums_.clear(); }
  struct Stage {
    double share = 0;  // of the way, from 0 to 1
    // Of a search by rounds; 0: it has none.
    uint32_t round = 0, rounds = 0;
    double loss = 0;
    std::vector<std::pair<std::string, double>> metrics;
  };
  void SetStage(Stage stage) { stage_ = std::move(stage); }
  const Stage& stage() const { return stage_; }

 private:
  std::map<ShardId, std::string> sums_;
  Stage stage_;
};

}  // namespace sluice::elastic
