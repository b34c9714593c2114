#include "elastic/embedding_slab.h"

#include <algorithm>
#include <numeric>

namespace sluice::elastic {
namespace {

constexpr size_t kFirstBuckets = 1024;
// Tables with so few ids get a bucket for each: the id is its own hash and no probe ever fails.
constexpr int64_t kDirectRows = 1 << 16;

}  // namespace

EmbeddingSlab::EmbeddingSlab(const models::EmbeddingTable& table,
                             const models::Optimizer& optimizer, uint64_t seed)
    : table_(table),
      optimizer_(optimizer),
      seed_(seed),
      stride_(table.dimension * (1 + optimizer.slot_count())) {
  size_t buckets = kFirstBuckets;
  while (table.rows <= kDirectRows && buckets < static_cast<size_t>(table.rows)) {
    buckets *= 2;
  }
  index_.assign(buckets, kEmpty);
  mask_ = buckets - 1;
}

size_t EmbeddingSlab::Bucket(int64_t id) const {
  const uint64_t key = static_cast<uint64_t>(id);
  if (table_.rows <= kDirectRows) {
    return key & mask_;
  }
  return static_cast<size_t>((key * 0x9E3779B97F4A7C15ULL) >> 20) & mask_;
}

uint32_t EmbeddingSlab::Find(int64_t id) const {
  for (size_t bucket = Bucket(id);; bucket = (bucket + 1) & mask_) {
    const uint32_t row = index_[bucket];
    if (row == kEmpty || ids_[row] == id) {
      return row;
    }
  }
}

void EmbeddingSlab::Grow() {
  index_.assign(index_.size() * 2, kEmpty);
  mask_ = index_.size() - 1;
  for (uint32_t row = 0; row < ids_.size(); ++row) {
    size_t bucket = Bucket(ids_[row]);
    while (index_[bucket] != kEmpty) {
      bucket = (bucket + 1) & mask_;
    }
    index_[bucket] = row;
  }
}

uint32_t EmbeddingSlab::FindOrCreate(int64_t id) {
  const uint32_t found = Find(id);
  if (found != kEmpty) {
    return found;
  }
  // Half full at most: probes stay short. A direct table has a bucket for each id and is never
  // full.
  if (table_.rows > kDirectRows && (ids_.size() + 1) * 2 > index_.size()) {
    Grow();
  }
  const uint32_t row = static_cast<uint32_t>(ids_.size());
  if (row % kRowsPerBlock == 0) {
    blocks_.push_back(std::make_unique<float[]>(kRowsPerBlock * stride_));
  }
  ids_.push_back(id);
  updates_.push_back(0);
  size_t bucket = Bucket(id);
  while (index_[bucket] != kEmpty) {
    bucket = (bucket + 1) & mask_;
  }
  index_[bucket] = row;
  const size_t n = table_.dimension;
  float* values = Row(row);
  models::InitializeRow(table_, seed_, id, std::span(values, n));
  optimizer_.InitializeSlots(std::span(values + n, stride_ - n), n);
  return row;
}

void EmbeddingSlab::Read(std::span<const int64_t> ids, float* values) const {
  const size_t n = table_.dimension;
  for (int64_t id : ids) {
    const uint32_t row = Find(id);
    if (row != kEmpty) {
      std::copy_n(Row(row), n, values);
    } else {
      models::InitializeRow(table_, seed_, id, std::span(values, n));
    }
    values += n;
  }
}

void EmbeddingSlab::Update(std::span<const int64_t> ids, const float* gradients, float rate_scale) {
  const size_t n = table_.dimension;
  for (int64_t id : ids) {
    const uint32_t row = FindOrCreate(id);
    float* values = Row(row);
    optimizer_.Update(values, values + n, gradients, n, ++updates_[row], rate_scale);
    gradients += n;
  }
}

void EmbeddingSlab::Write(std::span<const int64_t> ids, const float* values) {
  const size_t n = table_.dimension;
  for (int64_t id : ids) {
    float* row = Row(FindOrCreate(id));
    std::copy_n(values, n, row);
    optimizer_.Adopt(row, std::span(row + n, stride_ - n), n);
    values += n;
  }
}

models::NetworkWeights::Table EmbeddingSlab::Export() const {
  std::vector<uint32_t> order(ids_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return ids_[a] < ids_[b]; });
  models::NetworkWeights::Table table;
  table.ids.reserve(ids_.size());
  table.values.reserve(ids_.size() * table_.dimension);
  for (uint32_t row : order) {
    table.ids.push_back(ids_[row]);
    table.values.insert(table.values.end(), Row(row), Row(row) + table_.dimension);
  }
  return table;
}

size_t EmbeddingSlab::bytes() const {
  return blocks_.size() * kRowsPerBlock * stride_ * sizeof(float) +
         ids_.size() * (sizeof(int64_t) + sizeof(uint32_t)) + index_.size() * sizeof(uint32_t);
}

}  // namespace sluice::elastic
