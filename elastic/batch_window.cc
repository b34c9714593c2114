#include "elastic/batch_window.h"

#include <algorithm>

namespace sluice::elastic {

BatchWindow::Verdict BatchWindow::Check(uint32_t epoch, int64_t shard, int64_t batch,
                                        uint32_t attempt) {
  if (epoch < epoch_) {
    return Verdict::kApplied;
  }
  if (epoch > epoch_) {
    epoch_ = epoch;
    windows_.clear();
  }
  Window& window = windows_[shard];
  if (attempt < window.attempt) {
    return Verdict::kFenced;
  }
  window.attempt = attempt;
  if (batch == window.next) {
    return Verdict::kNew;
  }
  return batch < window.next ? Verdict::kApplied : Verdict::kGap;
}

void BatchWindow::Applied(uint32_t epoch, int64_t shard, int64_t batch) {
  if (epoch == epoch_) {
    windows_[shard].next = batch + 1;
  }
}

int64_t BatchWindow::AppliedBatches(uint32_t epoch, int64_t shard) const {
  if (epoch != epoch_) {
    return 0;
  }
  const auto found = windows_.find(shard);
  return found == windows_.end() ? 0 : found->second.next;
}

std::vector<BatchWindow::Shard> BatchWindow::Save() const {
  std::vector<Shard> shards;
  for (const auto& [shard, window] : windows_) {
    shards.push_back({shard, window.next, window.attempt});
  }
  std::sort(shards.begin(), shards.end(),
            [](const Shard& a, const Shard& b) { return a.shard < b.shard; });
  return shards;
}

void BatchWindow::Restore(uint32_t epoch, const std::vector<Shard>& shards) {
  epoch_ = epoch;
  windows_.clear();
  for (const Shard& shard : shards) {
    windows_[shard.shard] = {shard.next, shard.attempt};
  }
}

}  // namespace sluice::elastic
