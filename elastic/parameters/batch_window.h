#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

namespace sluice::elastic {

// Which batches a parameter server has applied, so that each is applied once however often it is
// pushed, and by whomever. A shard is one range of batches, in order, until a part of it is given
// to another worker: then the part is a range of its own, named by its first batch, with holders of
// its own. A server hears of it with the first push to the new range, the old holder perhaps later:
// until then both may push the same batches, and each is applied once, from whoever comes first.
// Remembers the current epoch only: an epoch begins when every batch of the last one has been
// applied everywhere, so an older push can only be a repetition. Of a shard that is applied to its
// end, in one range, a bit is all that stays: a table of a billion rows has a million shards, and
// every partition has a window. Not thread-safe.
class BatchWindow {
 public:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  // Whether there may be such a batch: a place that is no place is never asked for. Shards are
  // numbered from 0, and each that is finished is a bit.
  static constexpr int64_t kMostShards = int64_t{1} << 27;
  static bool IsPlace(int64_t shard, int64_t range, int64_t batch) {
    return shard >= 0 && shard < kMostShards && range >= 0 && batch >= range && batch < kAll;
  }
  enum class Verdict {
    kNew,      // apply it, then call Applied
    kApplied,  // acknowledge without applying
    kGap,      // a batch before it is missing: refuse
    kFenced,   // from a lease that has been given to another worker: refuse
  };
  Verdict Check(uint32_t epoch, int64_t shard, int64_t batch, uint32_t attempt, int64_t range = 0);
  // After kNew: the batch has been applied. Batches of one range come in order, one holder after
  // another, so a count is enough. `last`: the shard has none after it.
  void Applied(uint32_t epoch, int64_t shard, int64_t batch, bool last = false);
  // Batches [range, n) of the shard are applied. kAll of a shard or an epoch that is over.
  int64_t AppliedBatches(uint32_t epoch, int64_t shard, int64_t range = 0) const;

  // What is remembered, shards and ranges in ascending order.
  struct Shard {
    int64_t shard = 0;
    int64_t next = 0;  // batches [range, next) are applied
    uint32_t attempt = 0;
    int64_t range = 0;
  };
  uint32_t epoch() const { return epoch_; }
  std::vector<Shard> Save() const;                                 // those that are not finished
  const std::vector<bool>& finished() const { return finished_; }  // by shard; none beyond its end
  void Restore(uint32_t epoch, const std::vector<Shard>& shards, std::vector<bool> finished);

 private:
  struct Window {
    int64_t next = 0;
    uint32_t attempt = 0;
  };
  using Ranges = std::map<int64_t, Window>;  // by first batch; most shards have one
  static Window& RangeOf(Ranges* ranges, int64_t first);
  static Window& Covering(Ranges* ranges, int64_t batch);
  bool Finished(int64_t shard) const;
  void Finish(int64_t shard);

  uint32_t epoch_ = 0;
  std::unordered_map<int64_t, Ranges> shards_;
  std::vector<bool> finished_;
};

}  // namespace sluice::elastic
