#include "elastic/batch_window.h"

#include <algorithm>
#include <iterator>

namespace sluice::elastic {

BatchWindow::Window& BatchWindow::RangeOf(Ranges* ranges, int64_t first) {
  const auto [range, is_new] = ranges->try_emplace(first);
  if (is_new) {
    range->second.next = first;
    if (range != ranges->begin()) {
      // The range that this one was split off may have run on into it.
      range->second.next = std::max(first, std::prev(range)->second.next);
    }
  }
  return range->second;
}

BatchWindow::Verdict BatchWindow::Check(uint32_t epoch, int64_t shard, int64_t batch,
                                        uint32_t attempt, int64_t range) {
  if (epoch < epoch_) {
    return Verdict::kApplied;
  }
  if (epoch > epoch_) {
    epoch_ = epoch;
    shards_.clear();
  }
  Ranges& ranges = shards_[shard];
  Window& window = RangeOf(&ranges, range);
  if (attempt < window.attempt) {
    return Verdict::kFenced;
  }
  window.attempt = attempt;
  const Window& covering = Covering(&ranges, batch);
  if (batch == covering.next) {
    return Verdict::kNew;
  }
  return batch < covering.next ? Verdict::kApplied : Verdict::kGap;
}

// A holder that has not heard of a split yet goes on where the new range is already known: whoever
// comes first applies the next batch there.
BatchWindow::Window& BatchWindow::Covering(Ranges* ranges, int64_t batch) {
  return std::prev(ranges->upper_bound(batch))->second;
}

void BatchWindow::Applied(uint32_t epoch, int64_t shard, int64_t batch) {
  if (epoch == epoch_) {
    Covering(&shards_[shard], batch).next = batch + 1;
  }
}

int64_t BatchWindow::AppliedBatches(uint32_t epoch, int64_t shard, int64_t range) const {
  if (epoch < epoch_) {
    return kAll;
  }
  const auto ranges = shards_.find(shard);
  if (epoch > epoch_ || ranges == shards_.end()) {
    return range;
  }
  const auto found = ranges->second.find(range);
  return found == ranges->second.end() ? range : found->second.next;
}

std::vector<BatchWindow::Shard> BatchWindow::Save() const {
  std::vector<Shard> shards;
  for (const auto& [shard, ranges] : shards_) {
    for (const auto& [range, window] : ranges) {
      shards.push_back({shard, window.next, window.attempt, range});
    }
  }
  std::sort(shards.begin(), shards.end(), [](const Shard& a, const Shard& b) {
    return a.shard != b.shard ? a.shard < b.shard : a.range < b.range;
  });
  return shards;
}

void BatchWindow::Restore(uint32_t epoch, const std::vector<Shard>& shards) {
  epoch_ = epoch;
  shards_.clear();
  for (const Shard& shard : shards) {
    shards_[shard.shard][shard.range] = {shard.next, shard.attempt};
  }
}

}  // namespace sluice::elastic
