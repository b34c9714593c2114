#include "elastic/parameters/batch_window.h"

#include <algorithm>
#include <iterator>
#include <utility>

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
    finished_.clear();
  }
  if (Finished(shard)) {
    return Verdict::kApplied;
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

bool BatchWindow::Finished(int64_t shard) const {
  return shard >= 0 && shard < static_cast<int64_t>(finished_.size()) &&
         finished_[static_cast<size_t>(shard)];
}

void BatchWindow::Finish(int64_t shard) {
  shards_.erase(shard);
  const auto index = static_cast<size_t>(shard);
  finished_.resize(std::max(finished_.size(), index + 1));
  finished_[index] = true;
}

void BatchWindow::Applied(uint32_t epoch, int64_t shard, int64_t batch, bool last) {
  if (epoch != epoch_) {
    return;
  }
  Ranges& ranges = shards_[shard];
  Covering(&ranges, batch).next = batch + 1;
  // Where a part was split off, the shard is over when all parts are: they stay, they are few.
  if (last && ranges.size() == 1 && ranges.begin()->first == 0) {
    Finish(shard);
  }
}

int64_t BatchWindow::AppliedBatches(uint32_t epoch, int64_t shard, int64_t range) const {
  if (epoch < epoch_ || (epoch == epoch_ && Finished(shard))) {
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

void BatchWindow::Restore(uint32_t epoch, const std::vector<Shard>& shards,
                          std::vector<bool> finished) {
  epoch_ = epoch;
  finished_ = std::move(finished);
  shards_.clear();
  for (const Shard& shard : shards) {
    shards_[shard.shard][shard.range] = {shard.next, shard.attempt};
  }
}

}  // namespace sluice::elastic
