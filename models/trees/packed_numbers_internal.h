#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::models {

// Packs series of 32-bit numbers (float or uint32_t) without loss: a series with few distinct ones
// becomes their list and an index of no, one or two bytes per number; any other is copied.
class NumberPacker {
 public:
  // Appends `count` numbers that are `stride` apart.
  template <typename Number>
  void Add(const Number* numbers, size_t count, size_t stride = 1);
  // The series since the last call, for a NumberReader.
  std::vector<uint8_t> Take();

 private:
  template <typename Number>
  bool FindIndices(const Number* numbers, size_t count, size_t stride);
  void Append(const void* bytes, size_t size);

  std::vector<uint8_t> bytes_;
  // Scratch: of the current series.
  std::vector<uint16_t> places_;    // hash table: 1 + position in distinct_, 0: free
  std::vector<uint32_t> distinct_;  // bits, in order of appearance
  std::vector<uint16_t> indices_;   // of the numbers, in distinct_
};

// Reads packed series in the order in which they were added, with the same types and counts.
class NumberReader {
 public:
  explicit NumberReader(std::span<const uint8_t> bytes) : rest_(bytes) {}
  template <typename Number>
  void Read(Number* numbers, size_t count, size_t stride = 1);

 private:
  const uint8_t* Take(size_t size);

  std::span<const uint8_t> rest_;
  std::vector<uint32_t> distinct_;  // scratch
};

}  // namespace sluice::models
