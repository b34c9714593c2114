#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::models::histogram {

// How often each number occurs in a column. Up to kMostValues different numbers are told apart; of
// more, the fewest lowest bits that make them as few are left out of all. So the counts depend only
// on the numbers: adding rows and merging are associative and commutative, and whoever has counted
// which rows makes no difference. Not thread-safe.
class ValueCounts {
 public:
  static constexpr size_t kMostValues = 8192;

  // `value`: not NaN. -0 counts as 0.
  void Add(float value) { AddKey(KeyOf(value) >> dropped_, 1); }
  void Merge(const ValueCounts& other);

  // In a form for processes of the same build.
  void Write(std::string* bytes) const;
  // Takes written counts from the front of `bytes`; false: they are damaged.
  bool MergeWritten(std::string_view* bytes);

  // Numbers from `least` to `most`, of which there are `count`.
  struct Cell {
    float least, most;
    uint64_t count;
    bool operator==(const Cell&) const = default;
  };
  std::vector<Cell> Cells() const;  // ascending

 private:
  struct Slot {
    uint64_t count = 0;  // 0: free
    uint32_t key = 0;
  };

  // Numbers in ascending order.
  static uint32_t KeyOf(float value);
  static float ValueOf(uint32_t key);
  void AddKey(uint32_t key, uint64_t count);
  void Grow();
  void DropBits(uint32_t dropped);
  void Refill(size_t slots, uint32_t further_bits);

  std::vector<Slot> slots_;  // a hash table: a power of two, at most three quarters full
  size_t used_ = 0;
  uint32_t dropped_ = 0;  // lowest bits of the keys
};

}  // namespace sluice::models::histogram
