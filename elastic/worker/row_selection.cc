#include "elastic/worker/row_selection.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "elastic/queue/shard_order.h"

namespace sluice::elastic {

void GatherRows(const models::FeatureBatch& from, std::span<const uint32_t> rows,
                models::FeatureBatch* out) {
  out->rows = rows.size();
  out->dense_width = from.dense_width;
  const size_t width = from.dense_width;
  out->dense.resize(rows.size() * width);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(from.dense.data() + rows[i] * width, width, out->dense.data() + i * width);
  }
  const size_t label_width = from.rows == 0 ? 0 : from.labels.size() / from.rows;
  out->labels.resize(rows.size() * label_width);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(from.labels.data() + rows[i] * label_width, label_width,
                out->labels.data() + i * label_width);
  }
  out->label_numbers.resize(from.label_numbers.empty() ? 0 : rows.size() * label_width);
  for (size_t i = 0; i < rows.size() && !from.label_numbers.empty(); ++i) {
    std::copy_n(from.label_numbers.data() + rows[i] * label_width, label_width,
                out->label_numbers.data() + i * label_width);
  }
  out->weights.resize(from.weights.empty() ? 0 : rows.size());
  for (size_t i = 0; i < out->weights.size(); ++i) {
    out->weights[i] = from.weights[rows[i]];
  }
  out->groups.resize(from.groups.empty() ? 0 : rows.size());
  for (size_t i = 0; i < out->groups.size(); ++i) {
    out->groups[i] = from.groups[rows[i]];
  }
  out->offsets.resize(from.offsets.empty() ? 0 : rows.size());
  for (size_t i = 0; i < out->offsets.size(); ++i) {
    out->offsets[i] = from.offsets[rows[i]];
  }
  out->slots.resize(from.slots.size());
  for (size_t s = 0; s < from.slots.size(); ++s) {
    const models::IdSlot& slot = from.slots[s];
    models::IdSlot& target = out->slots[s];
    target.ids.clear();
    target.ends.clear();
    target.weights.clear();
    if (slot.ends.empty()) {
      target.ids.resize(rows.size());
      for (size_t i = 0; i < rows.size(); ++i) {
        target.ids[i] = slot.ids[rows[i]];
      }
      if (!slot.weights.empty()) {
        target.weights.resize(rows.size());
        for (size_t i = 0; i < rows.size(); ++i) {
          target.weights[i] = slot.weights[rows[i]];
        }
      }
      continue;
    }
    for (uint32_t row : rows) {
      const auto begin = static_cast<std::ptrdiff_t>(slot.Begin(row));
      const auto end = static_cast<std::ptrdiff_t>(slot.End(row));
      target.ids.insert(target.ids.end(), slot.ids.begin() + begin, slot.ids.begin() + end);
      if (!slot.weights.empty()) {
        target.weights.insert(target.weights.end(), slot.weights.begin() + begin,
                              slot.weights.begin() + end);
      }
      target.ends.push_back(static_cast<uint32_t>(target.ids.size()));
    }
  }
}

void GatherBatch(const models::FeatureBatch& rows, std::span<const uint32_t> order,
                 size_t batch_rows, BatchIndex batch, models::FeatureBatch* out) {
  const size_t begin = batch.index() * batch_rows;
  const size_t count = std::min(batch_rows, order.size() - begin);
  GatherRows(rows, order.subspan(begin, count), out);
}

uint64_t ChecksumOf(const models::FeatureBatch& rows) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
  const size_t label_width = rows.rows == 0 ? 0 : rows.labels.size() / rows.rows;
  uint64_t sum = 0;
  for (size_t row = 0; row < rows.rows; ++row) {
    uint64_t hash = kOdd;
    const auto add = [&hash](uint64_t word) { hash = std::rotl(hash ^ word, 29) * kOdd; };
    for (size_t i = row * rows.dense_width; i < (row + 1) * rows.dense_width; ++i) {
      add(std::bit_cast<uint32_t>(rows.dense[i]));
    }
    for (const models::IdSlot& slot : rows.slots) {
      for (size_t i = slot.Begin(row); i < slot.End(row); ++i) {
        add(slot.ids[i]);
        if (!slot.weights.empty()) {
          add(std::bit_cast<uint32_t>(slot.weights[i]));
        }
      }
    }
    for (size_t i = row * label_width; i < (row + 1) * label_width; ++i) {
      add(std::bit_cast<uint32_t>(rows.labels[i]));
    }
    if (!rows.offsets.empty()) {
      add(std::bit_cast<uint32_t>(rows.offsets[row]));
    }
    if (!rows.weights.empty()) {
      add(std::bit_cast<uint32_t>(rows.weights[row]));
    }
    sum += hash ^ (hash >> 32);
  }
  return sum == 0 && rows.rows > 0 ? 1 : sum;
}

std::vector<uint32_t> RowOrder(size_t rows, uint64_t seed, Epoch epoch, ShardId shard,
                               bool shuffle) {
  std::vector<uint32_t> order(rows);
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle) {
    return order;
  }
  uint64_t state = MixSeeds(seed, epoch.value(), shard.index());
  for (size_t i = rows; i > 1; --i) {
    // Multiplies a 32-bit number instead of dividing a 64-bit one: shards have far fewer than 2^32
    // rows.
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const size_t j = static_cast<size_t>(((state >> 32) * i) >> 32);
    std::swap(order[i - 1], order[j]);
  }
  return order;
}

}  // namespace sluice::elastic
