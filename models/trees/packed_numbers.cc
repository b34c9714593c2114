#include <algorithm>
#include <bit>
#include <cstring>

#include "models/trees/packed_numbers_internal.h"

namespace sluice::models {
namespace {

// A list of more would take as much as it saves, and its hash table would not fit in the
// processor's caches.
constexpr size_t kMostDistinct = 1 << 14;

// Hardly any two of the first numbers are equal: more of them would only take time.
constexpr size_t kTried = 4096;
constexpr size_t kMostOfTried = kTried - kTried / 16;

size_t HashOf(uint32_t bits) {
  return (bits * 0x9E3779B1u) >> 16u;
}

}  // namespace

void NumberPacker::Append(const void* bytes, size_t size) {
  const auto* from = static_cast<const uint8_t*>(bytes);
  bytes_.insert(bytes_.end(), from, from + size);
}

// Fills distinct_ and indices_; false: too many distinct numbers.
template <typename Number>
bool NumberPacker::FindIndices(const Number* numbers, size_t count, size_t stride) {
  const size_t most = std::min(kMostDistinct, count / 2);
  places_.assign(std::bit_ceil(2 * most), 0);  // at most half of them are taken
  const size_t mask = places_.size() - 1;
  distinct_.clear();
  indices_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(numbers[i * stride]);
    size_t place = HashOf(bits) & mask;
    while (places_[place] != 0 && distinct_[places_[place] - 1u] != bits) {
      place = (place + 1) & mask;
    }
    if (places_[place] == 0) {
      if (distinct_.size() == most || (i == kTried && distinct_.size() > kMostOfTried)) {
        return false;
      }
      distinct_.push_back(bits);
      places_[place] = static_cast<uint16_t>(distinct_.size());
    }
    indices_[i] = static_cast<uint16_t>(places_[place] - 1);
  }
  return true;
}

template <typename Number>
void NumberPacker::Add(const Number* numbers, size_t count, size_t stride) {
  static_assert(sizeof(Number) == sizeof(uint32_t));
  const bool listed = FindIndices(numbers, count, stride);
  const auto distinct = static_cast<uint32_t>(listed ? distinct_.size() : 0);
  Append(&distinct, sizeof(distinct));
  Append(distinct_.data(), distinct * sizeof(uint32_t));
  const size_t begin = bytes_.size();
  if (distinct == 0) {
    bytes_.resize(begin + count * sizeof(Number));
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(&bytes_[begin + i * sizeof(Number)], numbers + i * stride, sizeof(Number));
    }
  } else if (distinct > 256) {
    Append(indices_.data(), count * sizeof(uint16_t));
  } else if (distinct > 1) {
    bytes_.resize(begin + count);
    std::transform(indices_.begin(), indices_.end(),
                   bytes_.begin() + static_cast<std::ptrdiff_t>(begin),
                   [](uint16_t index) { return static_cast<uint8_t>(index); });
  }
}

std::vector<uint8_t> NumberPacker::Take() {
  std::vector<uint8_t> taken(bytes_);  // a copy takes no more than its size
  bytes_.clear();
  return taken;
}

const uint8_t* NumberReader::Take(size_t size) {
  const uint8_t* taken = rest_.data();
  rest_ = rest_.subspan(size);
  return taken;
}

template <typename Number>
void NumberReader::Read(Number* numbers, size_t count, size_t stride) {
  uint32_t distinct = 0;
  std::memcpy(&distinct, Take(sizeof(distinct)), sizeof(distinct));
  if (distinct == 0) {
    const uint8_t* from = Take(count * sizeof(Number));
    for (size_t i = 0; i < count; ++i) {
      std::memcpy(numbers + i * stride, from + i * sizeof(Number), sizeof(Number));
    }
    return;
  }
  distinct_.resize(distinct);
  std::memcpy(distinct_.data(), Take(distinct * sizeof(uint32_t)), distinct * sizeof(uint32_t));
  if (distinct == 1) {
    for (size_t i = 0; i < count; ++i) {
      numbers[i * stride] = std::bit_cast<Number>(distinct_[0]);
    }
  } else if (distinct <= 256) {
    const uint8_t* indices = Take(count);
    for (size_t i = 0; i < count; ++i) {
      numbers[i * stride] = std::bit_cast<Number>(distinct_[indices[i]]);
    }
  } else {
    const uint8_t* indices = Take(count * sizeof(uint16_t));
    for (size_t i = 0; i < count; ++i) {
      uint16_t index = 0;
      std::memcpy(&index, indices + i * sizeof(index), sizeof(index));
      numbers[i * stride] = std::bit_cast<Number>(distinct_[index]);
    }
  }
}

template void NumberPacker::Add(const float*, size_t, size_t);
template void NumberPacker::Add(const uint32_t*, size_t, size_t);
template void NumberReader::Read(float*, size_t, size_t);
template void NumberReader::Read(uint32_t*, size_t, size_t);

}  // namespace sluice::models
