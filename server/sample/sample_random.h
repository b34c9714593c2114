#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/mix_bits.h"

namespace sluice::server {

// Random numbers of one sample row: draw k depends only on (seed, row, k) (MixBits over a
// counter).
class RowRandom {
 public:
  RowRandom(uint64_t seed, int64_t row)
      : state_(MixBits(seed ^ MixBits(static_cast<uint64_t>(row) + kGolden))) {}

  uint64_t Bits() { return MixBits(state_ += kGolden); }
  // [0, 1)
  double Uniform() { return static_cast<double>(Bits() >> 11U) * 0x1p-53; }
  bool Chance(double probability) { return Uniform() < probability; }
  // Sum of four uniforms: close enough to a normal with mean 0 and deviation 1, and far cheaper.
  double Normal() {
    const uint64_t bits = Bits();
    const auto part = [bits](unsigned shift) {
      return static_cast<double>((bits >> shift) & 0xFFFFU) / 65'536.0;
    };
    return (part(0) + part(16) + part(32) + part(48) - 2.0) * 1.7320508075688772;
  }
  // Picks an index by cumulative weights that end with 1.
  template <size_t n>
  size_t Pick(const std::array<double, n>& cumulative) {
    const double u = Uniform();
    size_t i = 0;
    while (i + 1 < n && u >= cumulative[i]) {
      ++i;
    }
    return i;
  }

 private:
  static constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ULL;
  uint64_t state_;
};

inline double Sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

}  // namespace sluice::server
