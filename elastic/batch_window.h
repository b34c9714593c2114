#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sluice::elastic {

// Which batches a parameter server has applied, so that each is applied once however often it is
// pushed. Remembers the current epoch only: an epoch begins when every batch of the last one has
// been applied everywhere, so an older push can only be a repetition. Not thread-safe.
class BatchWindow {
 public:
  enum class Verdict {
    kNew,      // apply it, then call Applied
    kApplied,  // acknowledge without applying
    kGap,      // a batch before it is missing: refuse
    kFenced,   // from a lease that has been given to another worker: refuse
  };
  Verdict Check(uint32_t epoch, int64_t shard, int64_t batch, uint32_t attempt);
  // After kNew: the batch has been applied. Batches of one shard come in order, one holder after
  // another, so a count is enough.
  void Applied(uint32_t epoch, int64_t shard, int64_t batch);
  // Batches [0, n) of the shard are applied.
  int64_t AppliedBatches(uint32_t epoch, int64_t shard) const;

  // What is remembered, shards in ascending order.
  struct Shard {
    int64_t shard = 0;
    int64_t next = 0;  // batches [0, next) are applied
    uint32_t attempt = 0;
  };
  uint32_t epoch() const { return epoch_; }
  std::vector<Shard> Save() const;
  void Restore(uint32_t epoch, const std::vector<Shard>& shards);

 private:
  struct Window {
    int64_t next = 0;
    uint32_t attempt = 0;
  };
  uint32_t epoch_ = 0;
  std::unordered_map<int64_t, Window> windows_;
};

}  // namespace sluice::elastic
