#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "models/kernels/kernels.h"
#include "models/networks/network_internal.h"

namespace sluice::models {
namespace {

// Up to this size a table has a stamp per row (8 bytes each); beyond it, a batch's ids are hashed.
constexpr int64_t kMaxStamps = 1 << 20;

}  // namespace

IdNumbering::IdNumbering(int64_t rows, int64_t stamps)
    : rows_(rows), by_stamp_(rows <= std::min(stamps, kMaxStamps)) {}

void IdNumbering::Start(size_t occurrences) {
  if (round_ == std::numeric_limits<uint32_t>::max()) {
    std::fill(stamps_.begin(), stamps_.end(), Stamp{});
    std::fill(entries_.begin(), entries_.end(), Entry{});
    round_ = 0;
  }
  ++round_;
  if (by_stamp_) {
    stamps_.resize(static_cast<size_t>(rows_));
    return;
  }
  // At most half full, so that probe sequences stay short.
  const size_t wanted = std::bit_ceil(std::max<size_t>(2 * occurrences, 16));
  if (entries_.size() < wanted) {
    entries_.assign(wanted, Entry{});
  }
}

void IdNumbering::Number(const std::vector<uint32_t>& slot_ids, const SlotUse& use,
                         std::vector<int64_t>* ids, uint32_t* positions) {
  uint32_t largest = 0;
  for (const uint32_t id : slot_ids) {
    largest = std::max(largest, id);
  }
  SLUICE_CHECK(slot_ids.empty() || largest < use.buckets, "an id lies inside its feature's table");
  if (by_stamp_) {
    NumberByStamp(slot_ids, use.offset, ids, positions);
  } else {
    NumberByHash(slot_ids, use.offset, ids, positions);
  }
}

void IdNumbering::NumberByStamp(const std::vector<uint32_t>& slot_ids, int64_t offset,
                                std::vector<int64_t>* ids, uint32_t* positions) {
  Stamp* stamps = stamps_.data() + offset;
  for (size_t i = 0; i < slot_ids.size(); ++i) {
    Stamp& stamp = stamps[slot_ids[i]];
    if (stamp.round != round_) {
      stamp = {round_, static_cast<uint32_t>(ids->size())};
      ids->push_back(offset + slot_ids[i]);
    }
    positions[i] = stamp.number;
  }
}

void IdNumbering::NumberByHash(const std::vector<uint32_t>& slot_ids, int64_t offset,
                               std::vector<int64_t>* ids, uint32_t* positions) {
  const size_t mask = entries_.size() - 1;
  const int shift = 64 - std::countr_zero(entries_.size());
  for (size_t i = 0; i < slot_ids.size(); ++i) {
    const int64_t id = offset + slot_ids[i];
    // Fibonacci hashing: the high bits of the product are well mixed even for consecutive ids.
    size_t at = (static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15u) >> shift;
    while (entries_[at].stamp.round == round_ && entries_[at].id != id) {
      at = (at + 1) & mask;
    }
    Entry& entry = entries_[at];
    if (entry.stamp.round != round_) {
      entry = {id, {round_, static_cast<uint32_t>(ids->size())}};
      ids->push_back(id);
    }
    positions[i] = entry.stamp.number;
  }
}

const float* TableColumns::Factors(const IdSlot& slot, Combiner combiner, size_t rows) {
  const bool one_each = slot.ends.empty() && slot.weights.empty();
  const bool plain_sum = combiner == Combiner::kSum && slot.weights.empty();
  if (one_each || plain_sum) {
    return nullptr;
  }
  factors_.resize(slot.ids.size());
  for (size_t r = 0; r < rows; ++r) {
    const size_t begin = slot.Begin(r);
    const size_t end = slot.End(r);
    float sum = 0;
    float squares = 0;
    for (size_t i = begin; i < end; ++i) {
      const float weight = slot.weights.empty() ? 1.0f : slot.weights[i];
      factors_[i] = weight;
      sum += weight;
      squares += weight * weight;
    }
    float divisor = 1;
    if (combiner == Combiner::kMean) {
      divisor = sum;
    } else if (combiner == Combiner::kSqrtn) {
      divisor = std::sqrt(squares);
    }
    // Weights that sum to zero have no mean, so the row counts as empty.
    const float scale = divisor == 0 ? 0.0f : 1.0f / divisor;
    for (size_t i = begin; i < end; ++i) {
      factors_[i] *= scale;
    }
  }
  return factors_.data();
}

void TableColumns::Forward(const TableUse& use, const FeatureBatch& batch, const RowSet& set,
                           size_t dimension, float* to, size_t stride) {
  const Kernels& kernels = ActiveKernels();
  const bool embedding = use.kind == TableUse::Kind::kEmbedding;
  const uint32_t* positions = set.positions.data();
  for (const SlotUse& own : use.slots) {
    const IdSlot& slot = batch.slots[own.slot];
    float* first = to + own.column;
    const float* factors = Factors(slot, own.combiner, batch.rows);
    if (factors == nullptr && slot.ends.empty()) {
      const auto move = embedding ? kernels.gather_rows : kernels.gather_add_rows;
      move(set.values.data(), dimension, positions, batch.rows, dimension, first, stride);
    } else {
      for (size_t r = 0; r < batch.rows; ++r) {
        float* row = first + r * stride;
        if (embedding) {
          std::fill(row, row + dimension, 0.0f);
        }
        for (size_t i = slot.Begin(r); i < slot.End(r); ++i) {
          const float factor = factors == nullptr ? 1.0f : factors[i];
          const float* values = set.values.data() + positions[i] * dimension;
          for (size_t d = 0; d < dimension; ++d) {
            row[d] += factor * values[d];
          }
        }
      }
    }
    positions += slot.ids.size();
  }
}

void TableColumns::Backward(const TableUse& use, const FeatureBatch& batch, const RowSet& set,
                            size_t dimension, const float* gradient, size_t stride, float* rows) {
  const uint32_t* positions = set.positions.data();
  for (const SlotUse& own : use.slots) {
    const IdSlot& slot = batch.slots[own.slot];
    const float* first = gradient + own.column;
    const float* factors = Factors(slot, own.combiner, batch.rows);
    if (factors == nullptr && slot.ends.empty()) {
      ActiveKernels().scatter_add_rows(first, stride, positions, batch.rows, dimension, rows,
                                       dimension);
    } else {
      for (size_t r = 0; r < batch.rows; ++r) {
        const float* row = first + r * stride;
        for (size_t i = slot.Begin(r); i < slot.End(r); ++i) {
          const float factor = factors == nullptr ? 1.0f : factors[i];
          float* to = rows + positions[i] * dimension;
          for (size_t d = 0; d < dimension; ++d) {
            to[d] += factor * row[d];
          }
        }
      }
    }
    positions += slot.ids.size();
  }
}

}  // namespace sluice::models
