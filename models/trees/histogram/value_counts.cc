#include "models/trees/histogram/value_counts.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "models/trees/histogram/number_text.h"

namespace sluice::models::histogram {
namespace {

constexpr uint32_t kSign = 0x80000000U;
constexpr size_t kFirstSlots = 16;

}  // namespace

uint32_t ValueCounts::KeyOf(float value) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0F);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

float ValueCounts::ValueOf(uint32_t key) {
  return std::bit_cast<float>((key & kSign) != 0 ? key & ~kSign : ~key);
}

void ValueCounts::AddKey(uint32_t key, uint64_t count) {
  if (4 * used_ >= 3 * slots_.size()) {
    Grow();
  }
  const size_t mask = slots_.size() - 1;
  for (size_t i = (key * 0x9E3779B1U) >> 7U;; ++i) {
    Slot& slot = slots_[i & mask];
    if (slot.count == 0) {
      slot = {count, key};
      ++used_;
      if (used_ > kMostValues) {
        DropBits(dropped_ + 1);
      }
      return;
    }
    if (slot.key == key) {
      slot.count += count;
      return;
    }
  }
}

void ValueCounts::Grow() {
  Refill(std::max(kFirstSlots, 2 * slots_.size()), 0);
}

void ValueCounts::Refill(size_t slots, uint32_t further_bits) {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots));
  used_ = 0;
  dropped_ += further_bits;
  for (const Slot& slot : old) {
    if (slot.count > 0) {
      AddKey(slot.key >> further_bits, slot.count);
    }
  }
}

void ValueCounts::DropBits(uint32_t dropped) {
  while (dropped_ < dropped || used_ > kMostValues) {
    Refill(slots_.size(), 1);
  }
}

void ValueCounts::Merge(const ValueCounts& other) {
  DropBits(other.dropped_);
  for (const Slot& slot : other.slots_) {
    if (slot.count > 0) {
      AddKey(slot.key >> (dropped_ - other.dropped_), slot.count);
    }
  }
}

void ValueCounts::Write(std::string* bytes) const {
  WriteNumber(dropped_, bytes);
  WriteNumber(uint64_t{used_}, bytes);
  for (const Slot& slot : slots_) {
    if (slot.count > 0) {
      WriteNumber(slot.key, bytes);
      WriteNumber(slot.count, bytes);
    }
  }
}

bool ValueCounts::MergeWritten(std::string_view* bytes) {
  ValueCounts other;
  uint64_t used = 0;
  if (!ReadNumber(bytes, &other.dropped_) || !ReadNumber(bytes, &used) || other.dropped_ > 31 ||
      used > kMostValues) {
    return false;
  }
  for (uint64_t i = 0; i < used; ++i) {
    Slot slot;
    if (!ReadNumber(bytes, &slot.key) || !ReadNumber(bytes, &slot.count) || slot.count == 0) {
      return false;
    }
    other.AddKey(slot.key, slot.count);
  }
  Merge(other);
  return true;
}

std::vector<ValueCounts::Cell> ValueCounts::Cells() const {
  std::vector<Slot> sorted;
  for (const Slot& slot : slots_) {
    if (slot.count > 0) {
      sorted.push_back(slot);
    }
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Slot& a, const Slot& b) { return a.key < b.key; });
  std::vector<Cell> cells;
  const uint32_t rest = (uint32_t{1} << dropped_) - 1;
  for (const Slot& slot : sorted) {
    const uint32_t key = slot.key << dropped_;
    cells.push_back({ValueOf(key), ValueOf(key | rest), slot.count});
  }
  return cells;
}

}  // namespace sluice::models::histogram
