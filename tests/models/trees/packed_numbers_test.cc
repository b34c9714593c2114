#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "models/trees/packed_numbers_internal.h"

namespace sluice::models {
namespace {

std::vector<uint32_t> BitsOf(const std::vector<float>& numbers) {
  std::vector<uint32_t> bits;
  for (const float one : numbers) {
    bits.push_back(std::bit_cast<uint32_t>(one));
  }
  return bits;
}

// Packs, checks that the same bits come back, and returns the size.
size_t Packed(const std::vector<float>& numbers) {
  NumberPacker packer;
  packer.Add(numbers.data(), numbers.size());
  const std::vector<uint8_t> bytes = packer.Take();
  std::vector<float> again(numbers.size());
  NumberReader(bytes).Read(again.data(), again.size());
  EXPECT_EQ(BitsOf(again), BitsOf(numbers));
  return bytes.size();
}

std::vector<float> Cycle(size_t distinct, size_t count) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<float>(i % distinct) / 3;
  }
  return numbers;
}

std::vector<float> Random(size_t distinct, size_t count) {
  std::mt19937 random(1);
  std::vector<float> numbers(count);
  for (float& one : numbers) {
    one = static_cast<float>(random() % distinct) / 3;
  }
  return numbers;
}

TEST(PackedNumbersTest, TakeAsFewBytesAsTheirDistinctValuesNeed) {
  constexpr size_t kCount = 65'536;
  EXPECT_LT(Packed(Cycle(1, kCount)), 16u);
  EXPECT_LT(Packed(Cycle(2, kCount)), kCount + 16);
  EXPECT_LT(Packed(Cycle(256, kCount)), kCount + 256 * 4 + 16);
  EXPECT_LT(Packed(Cycle(257, kCount)), 2 * kCount + 257 * 4 + 16);
  EXPECT_LT(Packed(Random(16'384, kCount)), 2 * kCount + 16'384 * 4 + 16);
  EXPECT_LT(Packed(Random(20'000, kCount)), 4 * kCount + 16);
  EXPECT_LT(Packed(Cycle(kCount, kCount)), 4 * kCount + 16);
}

TEST(PackedNumbersTest, NeverTakeMuchMoreThanTheNumbers) {
  for (const size_t count : {0, 1, 2, 3, 100, 300, 1000}) {
    for (const size_t distinct : {1, 2, 50, 256, 257, 600}) {
      EXPECT_LE(Packed(Cycle(distinct, count)), count * 4 + 8) << count << " " << distinct;
    }
  }
}

TEST(PackedNumbersTest, KeepEveryBit) {
  std::vector<float> numbers;
  for (int i = 0; i < 20; ++i) {
    for (const float one : {0.0f, -0.0f, NAN, std::bit_cast<float>(0x7fc00001u), INFINITY,
                            std::numeric_limits<float>::denorm_min(), 1e-30f, 16'777'217.0f}) {
      numbers.push_back(one);
    }
  }
  EXPECT_LT(Packed(numbers), numbers.size() * 2);
}

TEST(PackedNumbersTest, SeriesAreReadInTheirOrderWithTheirStrides) {
  // Three columns of a row-major matrix: few values, all different, one value; then whole numbers.
  constexpr size_t kRows = 5'000;
  std::vector<float> matrix;
  std::vector<uint32_t> ids;
  for (size_t r = 0; r < kRows; ++r) {
    const auto number = static_cast<float>(r);
    matrix.insert(matrix.end(), {std::fmod(number, 7.0f), number, 42});
    ids.push_back(static_cast<uint32_t>(r % 300) << 20u);
  }
  NumberPacker packer;
  for (int again = 0; again < 2; ++again) {
    for (size_t c = 0; c < 3; ++c) {
      packer.Add(matrix.data() + c, kRows, 3);
    }
    packer.Add(ids.data(), kRows);
    const std::vector<uint8_t> bytes = packer.Take();
    EXPECT_LT(bytes.size(), kRows * (1 + 4 + 0 + 2) + 2'000);
    std::vector<float> read(matrix.size());
    std::vector<uint32_t> read_ids(kRows);
    NumberReader reader(bytes);
    for (size_t c = 0; c < 3; ++c) {
      reader.Read(read.data() + c, kRows, 3);
    }
    reader.Read(read_ids.data(), kRows);
    EXPECT_EQ(read, matrix);
    EXPECT_EQ(read_ids, ids);
  }
}

}  // namespace
}  // namespace sluice::models
