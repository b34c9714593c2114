#include "elastic/parameters/batch_window.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice::elastic {

BatchWindow::Window& BatchWindow::RangeOf(Ranges* ranges, RangeId id) {
  const auto [range, is_new] = ranges->try_emplace(id);
  if (is_new) {
    range->second.next = FirstBatch(id);
    if (range != ranges->begin()) {
      // The range from which this one was split off may have run on into it.
      range->second.next = std::max(FirstBatch(id), std::prev(range)->second.next);
    }
  }
  return range->second;
}

BatchWindow::Verdict BatchWindow::Check(Epoch epoch, ShardId shard, BatchIndex batch,
                                        Attempt attempt, RangeId range) {
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

// A holder that does not know of a split yet continues after the new range is already known: the
// first holder to arrive applies the next batch there.
BatchWindow::Window& BatchWindow::Covering(Ranges* ranges, BatchIndex batch) {
  return std::prev(ranges->upper_bound(RangeFrom(batch)))->second;
}

bool BatchWindow::Finished(ShardId shard) const {
  return shard >= ShardId::First() && shard < ShardId::At(finished_.size()) &&
         finished_[shard.index()];
}

void BatchWindow::Finish(ShardId shard) {
  shards_.erase(shard);
  finished_.resize(std::max(finished_.size(), shard.index() + 1));
  finished_[shard.index()] = true;
}

void BatchWindow::Applied(Epoch epoch, ShardId shard, BatchIndex batch, bool last) {
  if (epoch != epoch_) {
    return;
  }
  Ranges& ranges = shards_[shard];
  Covering(&ranges, batch).next = batch + 1;
  // If a part was split off, the shard is finished when all its ranges are: they are kept, since
  // they are few.
  if (last && ranges.size() == 1 && ranges.begin()->first == RangeId::First()) {
    Finish(shard);
  }
}

BatchIndex BatchWindow::AppliedBatches(Epoch epoch, ShardId shard, RangeId range) const {
  if (epoch < epoch_ || (epoch == epoch_ && Finished(shard))) {
    return kToTheEnd;
  }
  const auto ranges = shards_.find(shard);
  if (epoch > epoch_ || ranges == shards_.end()) {
    return FirstBatch(range);
  }
  const auto found = ranges->second.find(range);
  return found == ranges->second.end() ? FirstBatch(range) : found->second.next;
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

void BatchWindow::Restore(Epoch epoch, const std::vector<Shard>& shards,
                          std::vector<bool> finished) {
  epoch_ = epoch;
  finished_ = std::move(finished);
  shards_.clear();
  for (const Shard& shard : shards) {
    shards_[shard.shard][shard.range] = {shard.next, shard.attempt};
  }
}

}  // namespace sluice::elastic
