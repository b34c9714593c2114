#include "models/networks/id_numbering.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/status.h"

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

void IdNumbering::Number(const std::vector<uint32_t>& feature_ids, int64_t first_row,
                         std::vector<int64_t>* rows, uint32_t* positions) {
  uint32_t largest = 0;
  for (const uint32_t id : feature_ids) {
    largest = std::max(largest, id);
  }
  SLUICE_CHECK(feature_ids.empty() || largest < rows_ - first_row,
               "an id lies inside its feature's table");
  if (by_stamp_) {
    NumberByStamp(feature_ids, first_row, rows, positions);
  } else {
    NumberByHash(feature_ids, first_row, rows, positions);
  }
}

void IdNumbering::NumberByStamp(const std::vector<uint32_t>& feature_ids, int64_t first_row,
                                std::vector<int64_t>* rows, uint32_t* positions) {
  Stamp* stamps = stamps_.data() + first_row;
  for (size_t i = 0; i < feature_ids.size(); ++i) {
    Stamp& stamp = stamps[feature_ids[i]];
    if (stamp.round != round_) {
      stamp = {round_, static_cast<uint32_t>(rows->size())};
      rows->push_back(first_row + feature_ids[i]);
    }
    positions[i] = stamp.number;
  }
}

void IdNumbering::NumberByHash(const std::vector<uint32_t>& feature_ids, int64_t first_row,
                               std::vector<int64_t>* rows, uint32_t* positions) {
  const size_t mask = entries_.size() - 1;
  const int shift = 64 - std::countr_zero(entries_.size());
  for (size_t i = 0; i < feature_ids.size(); ++i) {
    const int64_t row = first_row + feature_ids[i];
    // Fibonacci hashing: the high bits of the product are well mixed even for consecutive ids.
    size_t at = (static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15u) >> shift;
    while (entries_[at].stamp.round == round_ && entries_[at].row != row) {
      at = (at + 1) & mask;
    }
    Entry& entry = entries_[at];
    if (entry.stamp.round != round_) {
      entry = {row, {round_, static_cast<uint32_t>(rows->size())}};
      rows->push_back(row);
    }
    positions[i] = entry.stamp.number;
  }
}

}  // namespace sluice::models
