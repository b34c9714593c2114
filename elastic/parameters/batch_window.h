#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "elastic/ids.h"

namespace sluice::elastic {

// Which batches a parameter server has applied, so that each is applied once however often, and by
// whichever worker, it is pushed. A shard is one range of batches, in order, until a part of it is
// given to another worker: then the part is a range of its own, named by its first batch, with
// holders of its own. A server learns of it with the first push to the new range, the old holder
// perhaps later: until then both may push the same batches, and each batch is applied once, for the
// first to arrive. Remembers the current epoch only: an epoch begins when every batch of the
// previous one has been applied everywhere, so an older push can only be a repetition. Of a shard
// that was applied to its end in one range only a bit is kept, since a table of a billion rows has
// a million shards, and every partition has a window. Not thread-safe.
class BatchWindow {
 public:
  // Limit for shard numbers, which are checked against it: shards are numbered from 0, and each
  // finished one takes a bit.
  static constexpr int64_t kMaxShards = int64_t{1} << 27;
  static bool IsPlace(ShardId shard, RangeId range, BatchIndex batch) {
    return shard >= ShardId::First() && shard < ShardId(kMaxShards) && range >= RangeId::First() &&
           batch >= FirstBatch(range) && batch < kToTheEnd;
  }
  enum class Verdict {
    kNew,      // apply it, then call Applied
    kApplied,  // acknowledge without applying
    kGap,      // a batch before it is missing: refuse
    kFenced,   // from a lease that was given to another worker: refuse
  };
  Verdict Check(Epoch epoch, ShardId shard, BatchIndex batch, Attempt attempt,
                RangeId range = RangeId::First());
  // After kNew: the batch has been applied. Batches of one range come in order, one holder after
  // another, so a count is enough. `last`: the shard has none after it.
  void Applied(Epoch epoch, ShardId shard, BatchIndex batch, bool last = false);
  // The batches of the range before this one are applied. kToTheEnd for a shard or an epoch that is
  // over.
  BatchIndex AppliedBatches(Epoch epoch, ShardId shard, RangeId range = RangeId::First()) const;

  // The remembered state, shards and ranges in ascending order.
  struct Shard {
    ShardId shard;
    BatchIndex next;  // the batches of the range before it are applied
    Attempt attempt = kNoAttempt;
    RangeId range;
  };
  Epoch epoch() const { return epoch_; }
  std::vector<Shard> Save() const;                                 // those that are not finished
  const std::vector<bool>& finished() const { return finished_; }  // by shard; none beyond its end
  void Restore(Epoch epoch, const std::vector<Shard>& shards, std::vector<bool> finished);

 private:
  struct Window {
    BatchIndex next;
    Attempt attempt = kNoAttempt;
  };
  using Ranges = std::map<RangeId, Window>;  // most shards have one
  static Window& RangeOf(Ranges* ranges, RangeId id);
  static Window& Covering(Ranges* ranges, BatchIndex batch);
  bool Finished(ShardId shard) const;
  void Finish(ShardId shard);

  Epoch epoch_ = kNoEpoch;
  std::unordered_map<ShardId, Ranges> shards_;
  std::vector<bool> finished_;
};

}  // namespace sluice::elastic
