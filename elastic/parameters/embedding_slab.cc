#include "elastic/parameters/embedding_slab.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/short_copy.h"
#include "elastic/parameters/packed_numbers.h"

namespace sluice::elastic {
namespace {

constexpr size_t kFirstBuckets = 1024;
// Tables with at most this many ids get a bucket for each.
constexpr int64_t kDirectRows = 1 << 16;
// Smaller tables fit into the processor's caches.
constexpr size_t kFarRows = 1 << 13;
// Each row of a large table costs a few cache misses. So rows are handled in groups of this size,
// whose memory is prefetched before the first row is needed.
constexpr size_t kTogether = 32;
// When all rows are inserted again, the bucket of a row this far ahead is prefetched.
constexpr size_t kBucketsAhead = 16;
constexpr size_t kCacheLine = 64;

inline void Prefetch(const void* at) {
#if defined(__GNUC__)
  __builtin_prefetch(at);
#else
  (void)at;
#endif
}

// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
inline uint64_t Hash(int64_t id) {
  return static_cast<uint64_t>(id) * 0x9E3779B97F4A7C15ULL;
}

}  // namespace

EmbeddingSlab::EmbeddingSlab(const models::EmbeddingTable& table,
                             const models::Optimizer& optimizer, uint64_t seed, uint32_t parts)
    : table_(table),
      optimizer_(optimizer),
      seed_(seed),
      initializer_(table, seed),
      stride_(table.dimension * (1 + optimizer.slot_count())),
      direct_(parts == 1 && table.rows > 0 && table.rows <= kDirectRows) {
  while ((stride_ * sizeof(float)) << far_shift_ < kHugePage) {
    ++far_shift_;
  }
  near_rows_ = kNearPages << far_shift_;
  size_t buckets = kFirstBuckets;
  while (direct_ && buckets < static_cast<size_t>(table.rows)) {
    buckets *= 2;
  }
  SetBuckets(buckets);
}

void EmbeddingSlab::SetBuckets(size_t buckets) {
  index_.assign(buckets, kEmpty);
  mask_ = buckets - 1;
  row_mask_ = direct_ ? kEmpty : static_cast<uint32_t>(mask_ >> 1);
}

size_t EmbeddingSlab::Bucket(int64_t id) const {
  return direct_ ? static_cast<uint64_t>(id) & mask_ : (Hash(id) >> 20) & mask_;
}

uint32_t EmbeddingSlab::Tag(int64_t id) const {
  return static_cast<uint32_t>(Hash(id) >> 32) & ~row_mask_;
}

uint32_t EmbeddingSlab::Find(int64_t id) const {
  const uint32_t tag = Tag(id);
  for (size_t bucket = Bucket(id);; bucket = (bucket + 1) & mask_) {
    const uint32_t entry = index_[bucket];
    if (entry == kEmpty) {
      return kEmpty;
    }
    const uint32_t row = entry & row_mask_;
    if ((entry & ~row_mask_) == tag && ids_[row] == id) {
      return row;
    }
  }
}

void EmbeddingSlab::Insert(int64_t id, uint32_t row) {
  size_t bucket = Bucket(id);
  while (index_[bucket] != kEmpty) {
    bucket = (bucket + 1) & mask_;
  }
  index_[bucket] = row | Tag(id);
}

void EmbeddingSlab::Grow() {
  SetBuckets(index_.size() * 2);
  for (uint32_t row = 0; row < ids_.size(); ++row) {
    if (row + kBucketsAhead < ids_.size()) {
      Prefetch(&index_[Bucket(ids_[row + kBucketsAhead])]);
    }
    Insert(ids_[row], row);
  }
}

uint32_t EmbeddingSlab::FindOrCreate(int64_t id) {
  const uint32_t found = Find(id);
  if (found != kEmpty) {
    return found;
  }
  // At most half full: probes stay short, and a row's number is less than row_mask_. A direct table
  // has a bucket for each id and is never full.
  if (!direct_ && (ids_.size() + 1) * 2 >= index_.size()) {
    Grow();
  }
  const uint32_t row = static_cast<uint32_t>(ids_.size());
  if (PlaceOf(row).row == 0) {
    blocks_.emplace_back(stride_ << (row < near_rows_ ? kNearShift : far_shift_));
  }
  ids_.push_back(id);
  Insert(id, row);
  return row;
}

void EmbeddingSlab::Initialize(size_t first_row) {
  const size_t n = table_.dimension;
  float* rows[kTogether];
  for (size_t begin = first_row; begin < ids_.size(); begin += kTogether) {
    const size_t count = std::min(kTogether, ids_.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      rows[i] = Row(static_cast<uint32_t>(begin + i));
      optimizer_.InitializeSlots(std::span(rows[i] + n, stride_ - n), n);
    }
    initializer_.Fill(std::span(ids_).subspan(begin, count), rows);
  }
}

void EmbeddingSlab::FetchIndex(std::span<const int64_t> ids, size_t at) const {
  if (ids_.size() < kFarRows || at >= ids.size()) {
    return;
  }
  for (const int64_t id : ids.subspan(at, std::min(kTogether, ids.size() - at))) {
    Prefetch(&index_[Bucket(id)]);
  }
}

void EmbeddingSlab::FetchRows(std::span<const int64_t> ids, size_t at) const {
  if (ids_.size() < kFarRows) {
    return;
  }
  for (const int64_t id : ids.subspan(at, std::min(kTogether, ids.size() - at))) {
    const uint32_t entry = index_[Bucket(id)];
    if (entry == kEmpty || (entry & ~row_mask_) != Tag(id)) {
      continue;
    }
    const uint32_t row = entry & row_mask_;
    Prefetch(&ids_[row]);
    const char* begin = reinterpret_cast<const char*>(Row(row));
    for (size_t byte = 0; byte < stride_ * sizeof(float); byte += kCacheLine) {
      Prefetch(begin + byte);
    }
  }
}

void EmbeddingSlab::Read(std::span<const int64_t> ids, float* values, Absent absent) const {
  const size_t n = table_.dimension;
  int64_t unknown[kTogether];
  float* targets[kTogether];
  FetchIndex(ids, 0);
  for (size_t begin = 0; begin < ids.size(); begin += kTogether) {
    FetchIndex(ids, begin + kTogether);
    FetchRows(ids, begin);
    size_t missing = 0;
    for (const int64_t id : ids.subspan(begin, std::min(kTogether, ids.size() - begin))) {
      const uint32_t row = Find(id);
      if (row != kEmpty) {
        CopyShort(Row(row), n, values);
      } else {
        unknown[missing] = id;
        targets[missing++] = values;
      }
      values += n;
    }
    if (absent == Absent::kInitial) {
      initializer_.Fill(std::span(unknown, missing), targets);
      continue;
    }
    for (float* target : std::span(targets, missing)) {
      std::fill_n(target, n, 0.0F);
    }
  }
}

void EmbeddingSlab::Update(std::span<const int64_t> ids, const float* gradients, int64_t step,
                           float rate_scale) {
  const size_t n = table_.dimension;
  uint32_t rows[kTogether];
  FetchIndex(ids, 0);
  for (size_t begin = 0; begin < ids.size(); begin += kTogether) {
    FetchIndex(ids, begin + kTogether);
    FetchRows(ids, begin);
    const size_t count = std::min(kTogether, ids.size() - begin);
    const size_t fresh = ids_.size();
    for (size_t i = 0; i < count; ++i) {
      rows[i] = FindOrCreate(ids[begin + i]);
    }
    Initialize(fresh);
    for (size_t i = 0; i < count; ++i) {
      float* values = Row(rows[i]);
      optimizer_.Update(values, values + n, gradients, n, step, rate_scale);
      gradients += n;
    }
  }
}

void EmbeddingSlab::Write(std::span<const int64_t> ids, const float* values) {
  const size_t n = table_.dimension;
  for (int64_t id : ids) {
    const size_t fresh = ids_.size();
    float* row = Row(FindOrCreate(id));
    Initialize(fresh);
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

// Servers pause meanwhile: every byte is read only once.
EmbeddingSlab::Image EmbeddingSlab::Save() const {
  Image image{Pack(ids_), {}};
  image.values.reserve(ids_.size() * stride_ * sizeof(float));
  for (size_t row = 0; row < ids_.size();) {
    const Place place = PlaceOf(static_cast<uint32_t>(row));
    const size_t of_block = size_t{1} << (row < near_rows_ ? kNearShift : far_shift_);
    const size_t rows = std::min(of_block, ids_.size() - row);
    image.values.append(reinterpret_cast<const char*>(blocks_[place.block].data()),
                        rows * stride_ * sizeof(float));
    row += rows;
  }
  return image;
}

Status EmbeddingSlab::Restore(const Image& image) {
  std::vector<int64_t> ids;
  const size_t row_bytes = stride_ * sizeof(float);
  if (!Unpack(image.ids, &ids).ok() || image.values.size() != ids.size() * row_bytes) {
    return InvalidArgument(fmt::format("the rows of table '{}' have another shape", table_.name));
  }
  EmbeddingSlab fresh(table_, optimizer_, seed_, direct_ ? 1 : 2);
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i];
    if (direct_ && (id < 0 || id >= table_.rows)) {
      return InvalidArgument(
          fmt::format("table '{}' has no row {}: it has {} rows", table_.name, id, table_.rows));
    }
    const uint32_t row = fresh.FindOrCreate(id);
    if (row != i) {
      return InvalidArgument(fmt::format("row {} of table '{}' comes twice", id, table_.name));
    }
    std::memcpy(fresh.Row(row), image.values.data() + i * row_bytes, row_bytes);
  }
  blocks_.swap(fresh.blocks_);
  ids_.swap(fresh.ids_);
  index_.swap(fresh.index_);
  std::swap(mask_, fresh.mask_);
  std::swap(row_mask_, fresh.row_mask_);
  return Status();
}

}  // namespace sluice::elastic
